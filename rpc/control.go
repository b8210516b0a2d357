package rpc

import (
	"context"
	"slices"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json/jsontext"
)

// The methods about the connection itself.

func (s *session) initialize(_ context.Context, p *schema.InitializeParams) (*schema.InitializeResult, error) {
	if p.Protocol != 0 && p.Protocol != schema.Protocol {
		err := schema.Errorf(schema.ErrInput, "the host speaks protocol %d, this sidecar %d", p.Protocol, schema.Protocol)
		err.Details = schema.Details{Reason: schema.ReasonProtocol, Supported: []int64{schema.Protocol}}
		return nil, err
	}
	if p.Client != nil {
		s.log.Info("the host introduced itself", "client", p.Client.Name, "version", p.Client.Version)
	}
	id := s.store.Identity()
	result := &schema.InitializeResult{
		Protocol: schema.Protocol,
		Server:   schema.Peer{Name: "taskforce", Version: s.options.Version},
		Engine:   schema.Peer{Name: id.Engine, Version: id.EngineVersion},
		Store:    schema.StoreIdentity{ID: id.ID, SchemaVersion: id.SchemaVersion, Location: id.Location},
		Capabilities: schema.Capabilities{
			MaxFrameBytes: int64(s.options.MaxFrame), MaxInFlight: int64(s.options.MaxInFlight), Watch: true, WatchBy: id.Watching,
		},
	}
	if s.options.Pinned != (schema.PinnedAuthority{}) {
		result.Pinned = &s.options.Pinned
	}
	return result, nil
}

func (s *session) ping(context.Context, *schema.NoParams) (*schema.Empty, error) {
	return &schema.Empty{}, nil
}

func (s *session) stop(context.Context, *schema.NoParams) (*jsontext.Value, error) {
	s.shutdown.Store(true)
	null := jsontext.Value("null")
	return &null, nil
}

func (s *session) discover(context.Context, *schema.NoParams) (*jsontext.Value, error) {
	document := jsontext.Value(slices.Clone(schema.OpenRPC))
	return &document, document.Compact()
}

func (s *session) nativeAdapter(context.Context, *schema.AnyParams) (*schema.Empty, error) {
	return nil, governor.NativeAdapter()
}

// cancelRequest cancels like the notification of that name, and says so.
func (s *session) cancelRequest(_ context.Context, p *schema.CancelParams) (*schema.Empty, error) {
	s.stream.cancel(p.ID)
	return &schema.Empty{}, nil
}

func (s *session) needsNotification(context.Context, *schema.NoParams) (*schema.Empty, error) {
	return nil, schema.Errorf(schema.ErrInvalidRequest, "exit is a notification: send it without an id")
}
