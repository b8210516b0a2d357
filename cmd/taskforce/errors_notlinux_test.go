//go:build !linux

package main

import "github.com/dsh-taskforce/sidecar/schema"

func init() {
	unprovoked[schema.ErrStoreFull] = "a small file system is mounted on Linux only"
	unprovoked[schema.ErrStoreIO] = "a disk is made to fail on Linux only"
}
