package sqlite

import (
	"bufio"
	"fmt"
	"os"
	"strings"

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

// SQLite's readers of a log hold shared locks on these bytes of its index.
const firstReader, lastReader = 123, 127

// logReaders names the other processes that read in the log of an index.
func logReaders(index string) (names []string, err error) {
	file, err := look(index)
	if err != nil {
		return nil, err
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return nil, err
	}
	defer locks.Close()
	seen := map[int]bool{os.Getpid(): true}
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		pid, ok := readLock(lines.Text(), file.inode)
		if !ok || seen[pid] {
			continue
		}
		seen[pid] = true
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // it may be another user's, or gone
		names = append(names, fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(command))))
	}
	return names, nil
}

// readLock tells who holds a reader's lock on the file, from a line such as
// "7: POSIX  ADVISORY  READ  4711 fe:00:1234 124 124".
func readLock(line string, inode uint64) (pid int, ok bool) {
	var number, kind, advisory, mode, file string
	var first, last int64
	if n, _ := fmt.Sscan(line, &number, &kind, &advisory, &mode, &pid, &file, &first, &last); n < 8 {
		return 0, false // one that waits, or reaches to the end of the file
	}
	on := strings.HasSuffix(file, fmt.Sprintf(":%d", inode))
	return pid, mode == "READ" && on && first >= firstReader && last <= lastReader
}
