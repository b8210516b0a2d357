package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"golang.org/x/sys/unix"
)

// The operations of FUSE that the folder answers, or that would change it.
const (
	fuseForget      = 2
	fuseGetattr     = 3
	fuseMkdir       = 9
	fuseOpen        = 14
	fuseStatfs      = 17
	fuseInit        = 26
	fuseCreate      = 35
	fuseInterrupt   = 36
	fuseBatchForget = 42
)

// A store on a file system whose locks do not reach every machine is refused,
// and nothing is opened there.
func TestSharedFileSystem(t *testing.T) {
	t.Parallel()
	folder, operations := mountFUSE(t)
	for _, command := range []string{"serve", "status", "doctor"} {
		launch(t, program(t, command, "--root", folder)).refusesToStart(
			folder, "FUSE", "choose a local folder", "--allow-network-fs", string(schema.ErrStoreConfig))
	}
	for _, operation := range operations() {
		if slices.Contains([]uint32{fuseMkdir, fuseOpen, fuseCreate}, operation) {
			t.Errorf("operation %d was tried", operation)
		}
	}
}

// mountFUSE mounts an empty folder that this process serves. operations unmounts
// it and returns what was asked of it.
func mountFUSE(t *testing.T) (folder string, operations func() []uint32) {
	t.Helper()
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("there is no FUSE here: %v", err)
	}
	folder = mount(t, "taskforce-test", "fuse", fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device))
	var asked []uint32
	served := make(chan error, 1)
	go func() {
		served <- serveFUSE(device, &asked)
		unix.Close(device)
	}()
	return folder, func() []uint32 {
		unmount(t, folder)
		if err := <-served; err != nil {
			t.Error(err)
		}
		return asked
	}
}

// serveFUSE answers requests until the folder is unmounted.
func serveFUSE(device int, asked *[]uint32) error {
	request := make([]byte, 1<<20)
	for {
		n, err := unix.Read(device, request)
		switch {
		case errors.Is(err, unix.ENODEV):
			return nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT):
			continue
		case err != nil:
			return err
		}
		operation := binary.NativeEndian.Uint32(request[4:n])
		*asked = append(*asked, operation)
		if operation == fuseForget || operation == fuseBatchForget || operation == fuseInterrupt {
			continue // these have no answer
		}
		if _, err := unix.Write(device, answerFUSE(operation, binary.NativeEndian.Uint64(request[8:n]))); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
}

// answerFUSE is the answer of an empty folder.
func answerFUSE(operation uint32, unique uint64) []byte {
	var body []any
	errno := int32(0)
	switch operation {
	case fuseInit: // the version of the protocol, and nothing that is optional
		body = []any{uint32(7), uint32(31), make([]byte, 8), uint16(1), uint16(1), uint32(4096), make([]byte, 40)}
	case fuseGetattr: // a folder, inode 1
		body = []any{make([]byte, 16), uint64(1), make([]byte, 52), uint32(unix.S_IFDIR | 0o700), uint32(2), make([]byte, 20)}
	case fuseStatfs:
		body = []any{make([]byte, 80)}
	default:
		errno = -int32(unix.ENOENT)
	}
	var text bytes.Buffer
	for _, part := range append([]any{errno, unique}, body...) {
		_ = binary.Write(&text, binary.NativeEndian, part) // a buffer takes everything
	}
	return append(binary.NativeEndian.AppendUint32(nil, uint32(text.Len()+4)), text.Bytes()...)
}
