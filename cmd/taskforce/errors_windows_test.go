package main

import "github.com/dsh-taskforce/sidecar/schema"

func init() {
	for _, code := range []schema.Code{schema.ErrStoreReplaced, schema.ErrStoreReadonly} {
		unprovoked[code] = "an open file can be neither moved nor cut off"
	}
}
