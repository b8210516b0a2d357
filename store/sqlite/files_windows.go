package sqlite

import (
	"os"
	"time"
)

// fileState is which file a name leads to, how long it is, and when it was last
// written to.
type fileState struct {
	info    os.FileInfo
	size    int64
	written time.Time
}

// look follows a name, without opening the file.
func look(path string) (fileState, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}, err
	}
	return fileState{info, info.Size(), info.ModTime()}, nil
}

func (f fileState) known() bool { return f.info != nil }

func (f fileState) same(other fileState) bool { return os.SameFile(f.info, other.info) }
