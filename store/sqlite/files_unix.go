//go:build unix

package sqlite

import "golang.org/x/sys/unix"

// fileState is which file a name leads to, how long it is, and when it was last
// written to.
type fileState struct {
	device, inode uint64
	size          int64
	written       unix.Timespec
}

// look follows a name, without opening the file.
func look(path string) (fileState, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return fileState{}, err
	}
	device := uint64(stat.Dev) //nolint:unconvert // it is narrower on Darwin
	return fileState{device, stat.Ino, stat.Size, stat.Mtim}, nil
}

func (f fileState) known() bool { return f.inode != 0 }

func (f fileState) same(other fileState) bool {
	return f.device == other.device && f.inode == other.inode
}
