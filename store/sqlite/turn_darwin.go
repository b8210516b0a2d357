package sqlite

import "golang.org/x/sys/unix"

// Locks of the process: two stores in one process do not queue.
const (
	setLock     = unix.F_SETLK
	setLockWait = unix.F_SETLKW
)
