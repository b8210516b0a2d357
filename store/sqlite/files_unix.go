//go:build unix

package sqlite

import "time"

// fileState is which file a name leads to, how long it is, and when it was last
// written to, if that was asked for.
type fileState struct {
	device, inode uint64
	size          int64
	written       time.Time
}

func (f fileState) known() bool { return f.inode != 0 }

func (f fileState) same(other fileState) bool {
	return f.device == other.device && f.inode == other.inode
}
