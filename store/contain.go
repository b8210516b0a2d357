package store

import (
	"fmt"
	"runtime/debug"

	"github.com/dsh-taskforce/sidecar/schema"
)

// Contain turns a panic of a transaction's function into an error of the code
// E_INTERNAL, so that it costs one call and not the process. It is for engines.
func Contain(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &schema.Error{Code: schema.ErrInternal, Message: "the call failed inside the sidecar", Err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	return fn()
}
