//go:build unix

package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockByte locks one byte of the file, waiting for it if it must. It reports
// whether the lock was had.
func lockByte(file *os.File, at int64, wait bool) bool {
	command := setLock
	if wait {
		command = setLockWait
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: at, Len: 1}
	for {
		err := unix.FcntlFlock(file.Fd(), command, &lock)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// unlockByte gives the lock on one byte back.
func unlockByte(file *os.File, at int64) {
	lock := unix.Flock_t{Type: unix.F_UNLCK, Whence: 0, Start: at, Len: 1}
	_ = unix.FcntlFlock(file.Fd(), setLock, &lock) // a lock that was had can be given back
}
