package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/sourcegraph/jsonrpc2"
)

// toWire is the only place where an error becomes a JSON-RPC error. What is not
// a [schema.Error] is a fault of the sidecar: the host learns that it happened,
// the log learns what.
func toWire(err error, log *slog.Logger) *jsonrpc2.Error {
	var known *schema.Error
	switch {
	case errors.As(err, &known):
		if known.Err != nil {
			log.Error("call failed", "code", known.Code, "error", err)
		}
	case errors.Is(err, context.Canceled):
		known = schema.Errorf(schema.ErrCancelled, "the request was cancelled before it began")
	default:
		log.Error("call failed", "error", err)
		known = schema.Errorf(schema.ErrInternal, "the call failed inside the sidecar")
	}
	data, encodeError := schema.Encode(known.Data())
	if encodeError != nil {
		log.Error("an error cannot be encoded", "error", encodeError)
		data = []byte(`{"code":"` + known.Code + `","retryable":false}`)
	}
	return &jsonrpc2.Error{Code: int64(known.Number()), Message: known.Message, Data: (*json.RawMessage)(&data)}
}

// protocolError is the error of a frame or envelope that cannot be served.
func protocolError(code schema.Code, message string) *schema.Error {
	return schema.Errorf(code, "%s", message)
}
