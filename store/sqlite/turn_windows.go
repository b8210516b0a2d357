package sqlite

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockByte locks one byte of the file, waiting for it if it must. It reports
// whether the lock was had.
func lockByte(file *os.File, at int64, wait bool) bool {
	flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK)
	if !wait {
		flags |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	return windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, &windows.Overlapped{Offset: uint32(at)}) == nil
}

// unlockByte gives the lock on one byte back.
func unlockByte(file *os.File, at int64) {
	_ = windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, &windows.Overlapped{Offset: uint32(at)})
}
