// Package rpc serves the method table of package schema over a pipe in JSON-RPC 2.0.
//
// The path of a request:
//
//	stdin -> framer -> guard -> stream -> jsonrpc2 -> Handle -> queue -> dispatcher -> store
//	                                                    |                                 |
//	stdout <------ outbox <------ stream <------ jsonrpc2 <------ reply <-----------------+
//
// The framer (frame.go) cuts frames and skips what is too long. The guard
// (guard.go) admits strict JSON only and takes the envelope apart. The stream
// (stream.go) is the jsonrpc2.ObjectStream: it keeps raw ids, parameters and
// results in a side table and shows jsonrpc2 only methods and ids of its own,
// because that library re-encodes parameters, mangles ids and drops replies at
// end of input. The dispatcher (session.go) is one goroutine, so requests take
// effect in the order received: it submits writes without waiting for their
// commit, lets a read wait for the writes before it, and starts nothing while
// replies pile up unread. The outbox (outbox.go) is the one writer of stdout.
//
// dispatch.go binds methods to their handlers; errors.go is the only place
// where an error becomes a JSON-RPC error.
package rpc
