//go:build unix

package main

import (
	"os"
	"syscall"
)

// stopSignals are the signals that ask for an orderly end.
var stopSignals = []os.Signal{syscall.SIGTERM, syscall.SIGHUP}

// keepFilesPrivate makes every file that SQLite creates readable by the user only.
func keepFilesPrivate() { syscall.Umask(0o077) }
