package sqlite

import (
	"time"

	"golang.org/x/sys/unix"
)

// look tells which file a name leads to and how long it is, without opening it.
//
// It does not ask for the time of the last write: since 6.13 a kernel that was
// asked for it gives the next write a time of its own, so that each sync of the
// log would have to write the inode too, which doubles what a commit costs.
func look(path string) (fileState, error) {
	return statx(path, unix.STATX_INO|unix.STATX_SIZE)
}

// lookWritten is look with the time of the last write.
func lookWritten(path string) (fileState, error) {
	return statx(path, unix.STATX_INO|unix.STATX_SIZE|unix.STATX_MTIME)
}

func statx(path string, mask int) (fileState, error) {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, mask, &stat); err != nil {
		return fileState{}, err
	}
	device := uint64(stat.Dev_major)<<32 | uint64(stat.Dev_minor)
	written := time.Unix(stat.Mtime.Sec, int64(stat.Mtime.Nsec))
	return fileState{device, stat.Ino, int64(stat.Size), written}, nil
}
