package sqlite

import "golang.org/x/sys/unix"

// sharedNames are the file systems whose locks do not reach every process that
// may open the file, or are not known to.
var sharedNames = map[int64]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.SMB2_SUPER_MAGIC:  "SMB",
	unix.CIFS_SUPER_MAGIC:  "SMB",
	unix.V9FS_MAGIC:        "9P",
	unix.FUSE_SUPER_MAGIC:  "FUSE or virtiofs",
	unix.CEPH_SUPER_MAGIC:  "Ceph",
	unix.AFS_SUPER_MAGIC:   "AFS",
	unix.AFS_FS_MAGIC:      "AFS",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
}

// sharedFileSystem names the network or shared file system that a folder is on, "" if it is local.
func sharedFileSystem(folder string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return "", err
	}
	return sharedNames[int64(uint32(stat.Type))], nil
}
