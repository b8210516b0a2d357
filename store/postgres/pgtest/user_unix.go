//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// owner is who runs the servers: PostgreSQL refuses to be run by root.
func owner() (uid, gid int) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		return uid, gid
	}
	return os.Getuid(), os.Getgid()
}

// giveAway lets the servers' user work in a folder.
func giveAway(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid := owner()
	return os.Chown(dir, uid, gid)
}

// unprivileged makes a command run as the servers' user.
func unprivileged(cmd *exec.Cmd) {
	if os.Getuid() == 0 {
		uid, gid := owner()
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	dieWithTest(cmd)
}
