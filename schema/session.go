package schema

import "github.com/go-json-experiment/json/jsontext"

// Protocol is the version of the wire contract. It changes when a host written
// for one version would misread another.
const Protocol = 1

// TransactionParams composes calls into one transaction.
type TransactionParams struct {
	// The calls, executed in this order.
	Calls []TransactionCall `json:"calls" jsonschema:"minItems=1,maxItems=256"`
}

// TransactionCall is one call of a transaction.
type TransactionCall struct {
	// A `task.*` or `governor.*` method, but not `watch`, `unwatch` or `nativeAdapter`.
	Method string `json:"method"`
	// Its parameters, by name or by position.
	Params jsontext.Value `json:"params" rule:"params"`
}

// TransactionResult holds the result of every call: all of them took effect, or none.
type TransactionResult struct {
	// The results, in the order of the calls.
	Results []jsontext.Value `json:"results"`
}

// InitializeParams says who the host is and which protocol it speaks. Every member is optional.
type InitializeParams struct {
	// The protocol version of the host; the sidecar refuses one it cannot serve.
	Protocol int64 `json:"protocol,omitzero" jsonschema:"minimum=1"`
	// The name and version of the client library, for the log.
	Client *Peer `json:"client,omitempty"`
}

// Peer names one side of the connection.
type Peer struct {
	// Its name.
	Name string `json:"name"`
	// Its version.
	Version string `json:"version,omitempty"`
}

// InitializeResult says what the sidecar is and what it serves.
type InitializeResult struct {
	// The protocol version that is spoken.
	Protocol int64 `json:"protocol"`
	// The sidecar's name and version.
	Server Peer `json:"server"`
	// The database engine behind the store, and its version.
	Engine Peer `json:"engine"`
	// Which store it is.
	Store StoreIdentity `json:"store"`
	// What this connection can do and its bounds.
	Capabilities Capabilities `json:"capabilities"`
	// The authority that this connection is pinned to; null if the host attests it with each call.
	Pinned *PinnedAuthority `json:"pinned"`
}

// StoreIdentity tells two stores apart.
type StoreIdentity struct {
	// A UUID that was drawn when a sidecar first wrote to the store.
	ID string `json:"id"`
	// The version of the sidecar's own additions to the store.
	SchemaVersion int64 `json:"schema_version"`
	// Where the store is, for people.
	Location string `json:"location"`
}

// Capabilities are the bounds of a connection.
type Capabilities struct {
	// Largest frame that is accepted, in bytes.
	MaxFrameBytes int64 `json:"max_frame_bytes"`
	// Most requests in flight; past that the sidecar stops reading.
	MaxInFlight int64 `json:"max_in_flight"`
	// Whether `governor.watch` is served.
	Watch bool `json:"watch"`
	// How a watch learns of commits: it is told of them, or it looks a few times a second.
	WatchBy Watching `json:"watch_by"`
}

// Watching is how a watch learns of commits.
type Watching string

// The ways of a watch.
const (
	WatchNotify Watching = "notify"
	WatchPoll   Watching = "poll"
)

// PinnedAuthority is the authority that `taskforce serve --run --role --session` fixes.
type PinnedAuthority struct {
	// The only run that the connection may name; absent if any.
	RunID string `json:"runId,omitempty"`
	// The only role that it may claim; absent if any.
	Role Role `json:"role,omitempty"`
	// The only session that it may claim; absent if any.
	SessionID string `json:"sessionId,omitempty"`
}

// NoParams takes no members.
type NoParams struct{}

// CancelParams names a request that the host no longer wants.
type CancelParams struct {
	// The id of the request.
	ID jsontext.Value `json:"id" rule:"id"`
}

// Empty is a result without members.
type Empty struct{}
