package sqlite

import "golang.org/x/sys/unix"

// sharedNames are the file systems whose locks do not reach every process that
// may open the file, or are not known to.
var sharedNames = map[string]string{
	"nfs": "NFS", "smbfs": "SMB", "afpfs": "AFP", "webdav": "WebDAV",
	"macfuse": "FUSE", "osxfuse": "FUSE", "fusefs": "FUSE", "virtiofs": "virtiofs", "9p": "9P",
}

// sharedFileSystem names the network or shared file system that a folder is on, "" if it is local.
func sharedFileSystem(folder string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return "", err
	}
	return sharedNames[unix.ByteSliceToString(stat.Fstypename[:])], nil
}
