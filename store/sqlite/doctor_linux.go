package sqlite

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// localNames are file systems that a store is usually on.
var localNames = map[int64]string{
	unix.EXT4_SUPER_MAGIC:      "ext4",
	unix.XFS_SUPER_MAGIC:       "xfs",
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	unix.F2FS_SUPER_MAGIC:      "f2fs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.TMPFS_MAGIC:           "tmpfs, which a restart of the machine empties",
	0x2fc12fc1:                 "zfs",
}

// fileSystemType names the file system that a folder is on.
func fileSystemType(folder string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return "", err
	}
	magic := int64(uint32(stat.Type))
	if name := localNames[magic]; name != "" {
		return name, nil
	}
	return fmt.Sprintf("type %#x", magic), nil
}
