package sqlite

import (
	"os"
	"time"
)

// fileState is which file a name leads to, how long it is, and when it was last
// written to, if that was asked for.
type fileState struct {
	info    os.FileInfo
	size    int64
	written time.Time
}

// look tells which file a name leads to and how long it is, without opening it.
func look(path string) (fileState, error) { return lookWritten(path) }

// lookWritten is look with the time of the last write.
func lookWritten(path string) (fileState, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}, err
	}
	return fileState{info, info.Size(), info.ModTime()}, nil
}

func (f fileState) known() bool { return f.info != nil }

func (f fileState) same(other fileState) bool { return os.SameFile(f.info, other.info) }
