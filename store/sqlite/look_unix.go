//go:build unix && !linux

package sqlite

import (
	"time"

	"golang.org/x/sys/unix"
)

// look tells which file a name leads to and how long it is, without opening it.
func look(path string) (fileState, error) { return lookWritten(path) }

// lookWritten is look with the time of the last write.
func lookWritten(path string) (fileState, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return fileState{}, err
	}
	device := uint64(stat.Dev) //nolint:unconvert // it is narrower on Darwin
	return fileState{device, stat.Ino, stat.Size, time.Unix(stat.Mtim.Unix())}, nil
}
