package governor_test

import (
	"fmt"
	"slices"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/governor/model"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/go-json-experiment/json/jsontext"
)

// handler binds the JSON of a call's parameters to the real method.
type handler func(params jsontext.Value) (func(store.Tx) (any, error), error)

// handlers are the methods that the machine drives.
var handlers = map[string]handler{
	schema.Reserve.Name:      handle(schema.Reserve, governor.Reserve),
	schema.Bind.Name:         handle(schema.Bind, governor.Bind),
	schema.MarkUnknown.Name:  handle(schema.MarkUnknown, governor.MarkUnknown),
	schema.Settle.Name:       handle(schema.Settle, governor.Settle),
	schema.ExtendBudget.Name: handle(schema.ExtendBudget, governor.ExtendBudget),
	schema.GetSnapshot.Name:  handle(schema.GetSnapshot, governor.Snapshot),
	schema.Check.Name:        handle(schema.Check, governor.Check),
	schema.OpenTask.Name:     handle(schema.OpenTask, store.Open),
	schema.ClaimTask.Name:    handle(schema.ClaimTask, store.Claim),
	schema.SubmitTask.Name:   handle(schema.SubmitTask, store.Submit),
	schema.AcceptTask.Name:   handle(schema.AcceptTask, store.Accept),
	schema.RejectTask.Name:   handle(schema.RejectTask, store.Reject),
	schema.CancelTask.Name:   handle(schema.CancelTask, store.Cancel),
	schema.GetTask.Name:      handle(schema.GetTask, store.Get),
}

func handle[P, R any](method schema.Method[P, R], fn func(store.Tx, *P) (*R, error)) handler {
	return func(params jsontext.Value) (func(store.Tx) (any, error), error) {
		p := new(P)
		if err := method.Bind(params, p); err != nil {
			return nil, err
		}
		return func(tx store.Tx) (any, error) { return fn(tx, p) }, nil
	}
}

// bind puts a call through its JSON, as it comes over the wire.
func (m *machine) bind(c model.Call) (func(store.Tx) (any, error), error) {
	return handlers[c.Method](m.text(c))
}

// text is the JSON of a call's parameters, with the real store's identities.
func (m *machine) text(c model.Call) jsontext.Value {
	text, err := schema.Encode(m.withRealIDs(c.Params))
	if err != nil {
		m.t.Fatalf("%s: %v", c.Method, err)
	}
	if c.Unknown {
		text = slices.Concat([]byte(`{"input":{"milestone":1,`), text[len(`{"input":{`):])
	}
	return text
}

// withRealIDs translates the reservation that a call names; one that the model
// does not know stays unknown.
func (m *machine) withRealIDs(params any) any {
	translate := func(id *string) {
		if real, known := m.real[*id]; known {
			*id = real
		}
	}
	switch p := params.(type) {
	case schema.BindParams:
		translate(&p.Input.ReservationID)
		return p
	case schema.MarkUnknownParams:
		translate(&p.Input.ReservationID)
		return p
	case schema.SettleParams:
		translate(&p.Input.ReservationID)
		return p
	}
	return params
}

// note keeps what is done for whoever reads a failure.
func (m *machine) note(on int, how string, calls []model.Call) {
	for _, c := range calls {
		m.steps = append(m.steps, fmt.Sprintf("sidecar %d: %s%s %s", on, how, c.Method, m.text(c)))
	}
}
