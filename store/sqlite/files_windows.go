package sqlite

import "os"

// fileState is which file a name leads to, and how long it is.
type fileState struct {
	info os.FileInfo
	size int64
}

// look follows a name, without opening the file.
func look(path string) (fileState, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}, err
	}
	return fileState{info, info.Size()}, nil
}

func (f fileState) known() bool { return f.info != nil }

func (f fileState) same(other fileState) bool { return os.SameFile(f.info, other.info) }
