package sqlite

import (
	"context"
	"errors"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"golang.org/x/sys/unix"
)

// The file systems of DESIGN.md, section 6, and some that keep locks. A real FUSE
// is mounted by a test of the program; the others need a server.
func TestSharedFileSystems(t *testing.T) {
	for magic, want := range map[int64]string{
		0x6969: "NFS", 0x517b: "SMB", 0xfe534d42: "SMB", 0xff534d42: "SMB", 0x01021997: "9P", 0x65735546: "FUSE or virtiofs",
		0x00c36400: "Ceph", 0x5346414f: "AFS", 0x6b414653: "AFS", 0x7461636f: "OCFS2",
		unix.EXT4_SUPER_MAGIC: "", unix.XFS_SUPER_MAGIC: "", unix.BTRFS_SUPER_MAGIC: "", unix.TMPFS_MAGIC: "", unix.OVERLAYFS_SUPER_MAGIC: "",
	} {
		if got := sharedNames[magic]; got != want {
			t.Errorf("%#x is %q, want %q", magic, got, want)
		}
	}
}

// A store on such a file system is refused, and with the caller's consent kept
// with a rollback journal, also one that had a log. The test takes the file system
// of its own folder for a shared one, so it runs alone.
func TestSharedFileSystemNeedsConsent(t *testing.T) {
	root := t.TempDir()
	openAt(t, root).Close()
	var stat unix.Statfs_t
	if err := unix.Statfs(root, &stat); err != nil {
		t.Fatal(err)
	}
	magic := int64(uint32(stat.Type))
	name, shared := sharedNames[magic]
	sharedNames[magic] = "a test"
	defer func() {
		if delete(sharedNames, magic); shared {
			sharedNames[magic] = name
		}
	}()
	for _, root := range []string{root, t.TempDir()} {
		var known *schema.Error
		if _, err := Open(context.Background(), root, Options{}); !errors.As(err, &known) || known.Code != schema.ErrStoreConfig {
			t.Errorf("got %v", err)
		}
		s, err := Open(context.Background(), root, Options{AllowNetworkFS: true})
		if err != nil {
			t.Fatal(err)
		}
		var mode string
		if _, err := s.writer.conn.scan(context.Background(), "PRAGMA journal_mode", nil, &mode); err != nil || mode != "delete" {
			t.Errorf("the journal mode is %q (%v)", mode, err)
		}
		s.Close()
	}
}
