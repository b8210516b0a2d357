package sqlite

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// sharedFileSystem names the network file system that a folder is on, "" if it is local.
func sharedFileSystem(folder string) (string, error) {
	volume := filepath.VolumeName(folder)
	root, err := windows.UTF16PtrFromString(volume + `\`)
	if err != nil {
		return "", err
	}
	if windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return "a network drive", nil
	}
	return "", nil
}
