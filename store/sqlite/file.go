package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dsh-taskforce/sidecar/schema"
)

// prepareFile checks the folder and the file before SQLite opens it, and
// returns the journal mode to set: "wal" for a new file, "delete" on a network
// file system, "" to keep what the file has.
func (s *Store) prepareFile() (journal string, err error) {
	folder := filepath.Dir(s.path)
	if !s.options.ReadOnly {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", rootError(err, folder)
		}
	}
	if info, err := os.Stat(folder); err != nil {
		return "", rootError(err, folder)
	} else if !info.IsDir() {
		return "", schema.Errorf(schema.ErrStoreConfig, "the root %s is not a folder", folder)
	}
	shared, err := sharedFileSystem(folder)
	if err != nil {
		return "", configError(err, "the file system of %s cannot be examined", folder)
	}
	if shared != "" && !s.options.AllowNetworkFS {
		return "", schema.Errorf(schema.ErrStoreConfig,
			"the root %s is on %s, whose locks cannot be relied on; choose a local folder, or take the risk with --allow-network-fs", folder, shared)
	}
	info, err := os.Stat(s.path)
	absent := errors.Is(err, fs.ErrNotExist)
	s.fresh = absent || err == nil && info.Mode().IsRegular() && info.Size() == 0
	switch {
	case err != nil && !absent:
		return "", rootError(err, s.path)
	case absent && s.options.ReadOnly:
		return "", schema.Errorf(schema.ErrStoreConfig, "there is no database %s", s.path)
	case !absent && !info.Mode().IsRegular():
		return "", schema.Errorf(schema.ErrStoreConfig, "%s is not a file", s.path)
	case shared != "":
		return "delete", nil
	case s.fresh:
		return "wal", nil
	}
	return "", nil
}

func rootError(err error, path string) error {
	code := schema.ErrStoreConfig
	if errors.Is(err, fs.ErrPermission) {
		code = schema.ErrStoreReadonly
	}
	return &schema.Error{Code: code, Message: path + " cannot be used: " + reasonOf(err), Err: err}
}

// reasonOf is the operating system's word for an error, without the path and call around it.
func reasonOf(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// makePrivate takes the file that this process has just created away from other users.
func (s *Store) makePrivate() error { return os.Chmod(s.path, 0o600) }
