//go:build !race

package main

import "time"

// processorLimit is what a sidecar may use of the processor after its host has died.
const processorLimit = 200 * time.Millisecond
