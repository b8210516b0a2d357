package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

func nothing() error { return nil }

// echo parses each line, does the work, and answers with an empty result. It
// writes when it has read everything that has arrived, as any good loop over a
// pipe does.
func echo(in io.Reader, out io.Writer, work func() error) error {
	r, w := bufio.NewReader(in), bufio.NewWriter(out)
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var request struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.Unmarshal(line, &request); err != nil {
			return err
		}
		if err := work(); err != nil {
			return err
		}
		// A failed write is reported by every later one, so by Flush.
		_, _ = w.WriteString(`{"jsonrpc":"2.0","id":`)
		_, _ = w.Write(request.ID)
		_, _ = w.WriteString(",\"result\":{}}\n")
		if r.Buffered() > 0 {
			continue
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}
