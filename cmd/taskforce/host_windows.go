package main

import (
	"os"
	"syscall"
)

// stopSignals are the signals that ask for an orderly end.
var stopSignals = []os.Signal{syscall.SIGTERM}

// keepFilesPrivate does nothing: on Windows a new file inherits the permissions of its folder.
func keepFilesPrivate() {}
