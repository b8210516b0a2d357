package main

import (
	"os"
	"syscall"

	"github.com/dsh-taskforce/sidecar/rpc"
	"golang.org/x/sys/windows"
)

// stopSignals are the signals that ask for an orderly end: the runtime reports a
// closed console, a log-off and a shutdown as this one. Ctrl-C is none while the
// input is open.
var stopSignals = []os.Signal{syscall.SIGTERM}

// keepFilesPrivate does nothing: on Windows a new file inherits the permissions of its folder.
func keepFilesPrivate() {}

// surviveBrokenPipes does nothing: on Windows a closed pipe is an error of the write.
func surviveBrokenPipes() {}

// watchHost waits for the end of the parent. Its handle keeps the process id
// from being given to another, and no clock has to tick.
func watchHost(_ <-chan struct{}, _ *hostInput, gone func(cause error)) {
	const access = windows.SYNCHRONIZE | windows.PROCESS_QUERY_LIMITED_INFORMATION
	parent, err := windows.OpenProcess(access, false, uint32(os.Getppid()))
	if err != nil {
		return // it may not be looked at; the pipes tell most of its ends
	}
	if !olderThanSelf(parent) {
		_ = windows.CloseHandle(parent) // the id was given to another already
		return
	}
	if event, err := windows.WaitForSingleObject(parent, windows.INFINITE); err == nil && event == windows.WAIT_OBJECT_0 {
		gone(rpc.ErrHostGone)
	}
}

// olderThanSelf reports whether a process was created before this one.
func olderThanSelf(process windows.Handle) bool {
	created := func(h windows.Handle) (int64, error) {
		var creation, exit, kernel, user windows.Filetime
		err := windows.GetProcessTimes(h, &creation, &exit, &kernel, &user)
		return creation.Nanoseconds(), err
	}
	theirs, err := created(process)
	if err != nil {
		return false
	}
	ours, err := created(windows.CurrentProcess())
	return err == nil && theirs <= ours
}
