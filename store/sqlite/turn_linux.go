package sqlite

import "golang.org/x/sys/unix"

// Locks of the open file, so that two stores in one process queue too.
const (
	setLock     = unix.F_OFD_SETLK
	setLockWait = unix.F_OFD_SETLKW
)
