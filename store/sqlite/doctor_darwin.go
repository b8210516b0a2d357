package sqlite

import "golang.org/x/sys/unix"

// fileSystemType names the file system that a folder is on.
func fileSystemType(folder string) (string, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(folder, &stat)
	return unix.ByteSliceToString(stat.Fstypename[:]), err
}
