//go:build !failpoints

package sqlite

// failpoint is where a binary that is built with the tag failpoints fails on
// purpose (failpoint.go). This one does not.
func failpoint(string) error { return nil }
