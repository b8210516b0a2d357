//go:build race

package main

import "time"

// processorLimit is what a sidecar may use of the processor after its host has
// died: under the race detector everything takes several times as long.
const processorLimit = time.Second
