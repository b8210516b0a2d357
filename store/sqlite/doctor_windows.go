package sqlite

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// fileSystemType names the file system that a folder is on.
func fileSystemType(folder string) (string, error) {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(folder) + `\`)
	if err != nil {
		return "", err
	}
	name := make([]uint16, windows.MAX_PATH+1)
	err = windows.GetVolumeInformation(root, nil, 0, nil, nil, nil, &name[0], uint32(len(name)))
	return windows.UTF16ToString(name), err
}
