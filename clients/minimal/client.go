// Package minimal is a whole client of the Taskforce sidecar in some 40 lines of Go: what a host in any
// language needs. It makes one call at a time and does not restart a sidecar that died.
package minimal

import (
	"context"
	"encoding/json"
	"io"
	"os/exec"
)

// Message is a reply, or a notification if it has a method. A refusal's reply has an error, whose
// data holds `code`, `retryable` and what is needed to act.
type Message struct {
	ID             int
	Method         string
	Params, Result json.RawMessage
	Error          *struct{ Data json.RawMessage }
}

// Client speaks with one sidecar over its standard input and output. Notified takes notifications.
type Client struct {
	Notified func(Message)
	process  *exec.Cmd
	requests io.WriteCloser
	replies  *json.Decoder
	lastID   int
}

// Start starts `taskforce serve` with more arguments. The end of the context kills it.
func Start(ctx context.Context, notified func(Message), binary string, args ...string) (*Client, error) {
	process := exec.CommandContext(ctx, binary, append([]string{"serve"}, args...)...)
	requests, _ := process.StdinPipe() // fails only if asked for twice
	replies, _ := process.StdoutPipe()
	return &Client{notified, process, requests, json.NewDecoder(replies), 0}, process.Start()
}

// Call makes one call and returns its reply.
func (c *Client) Call(method string, params any) (reply Message, err error) {
	c.lastID++
	request := map[string]any{"jsonrpc": "2.0", "id": c.lastID, "method": method, "params": params}
	err = json.NewEncoder(c.requests).Encode(request)
	for err == nil && reply.ID != c.lastID {
		reply, err = c.Receive()
	}
	return reply, err
}

// Receive waits for the next message.
func (c *Client) Receive() (message Message, err error) {
	if err = c.replies.Decode(&message); message.Method != "" {
		c.Notified(message)
	}
	return message, err
}

// Close ends the sidecar's input and waits for its exit. It releases nothing in the store.
func (c *Client) Close() error {
	_ = c.requests.Close() // the exit status tells more
	return c.process.Wait()
}
