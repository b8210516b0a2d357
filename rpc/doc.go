// Package rpc serves the method table of package schema over a pipe in JSON-RPC 2.0.
//
// The path of a request:
//
//	stdin -> framer -> guard -> stream -> jsonrpc2 -> queue -> dispatcher -> store
//	                              |                                            |
//	                              +--> settle --+                              |
//	                                            |                              |
//	stdout <------ outbox <---------------------+-- stream <- jsonrpc2 <- reply
//
// The framer (frame.go) cuts frames and skips what is too long. The guard
// (guard.go) admits strict JSON only and takes the envelope apart; jsontext does
// the grammar, because it refuses what encoding/json repairs in silence (bad
// UTF-8, unpaired surrogates, duplicate members), at 0.5 us a frame. What a
// frame asks is made into calls (receive.go): ids are claimed, batches counted.
//
// The stream (stream.go) is the jsonrpc2.ObjectStream. It keeps raw ids,
// parameters and results in a side table and shows jsonrpc2 only ids of its own,
// because that library re-encodes parameters, mangles ids and drops replies at
// end of input. What the reader can settle at once is never shown: faults of
// the frame, notifications, and, while nothing is queued, requests that change
// nothing or come alone, if the store need not wait. Its answers are written
// together, before it waits for more input.
//
// The dispatcher (queue.go) is one goroutine, so requests take effect in the
// order received: it submits writes without waiting for their commit, and lets
// a read wait for the writes before it. A reply is made when the transaction is
// over, and handed to the outbox (outbox.go), the one writer of stdout.
//
// # Bounds
//
// Room (room.go) is taken for each queued request and given back when its reply
// is written; while there is none, nothing is read. While too many bytes of
// replies wait, nothing is read and nothing begun. Only the reader and the
// outbox ever block in a read or write, and neither holds a lock, a transaction
// or room that another needs, so a session can end beside them (session.go);
// whoever else waits for the host is woken by the end.
//
// # Silence
//
// Every request has one reply, but for these: after exit, after the end of the
// context or of the output, what was not yet read is not answered; a reply that
// the host does not take within the grace is lost with the process.
//
// dispatch.go binds methods to their handlers; errors.go is the only place
// where an error becomes a JSON-RPC error.
package rpc
