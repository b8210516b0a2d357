package rpc

import (
	"context"
	"strings"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/go-json-experiment/json/jsontext"
)

// operation is a method bound to its handler.
type operation struct {
	spec *schema.Spec
	// bind reads the parameters and returns what is to be run in a transaction,
	// and what that may touch; nil for an operation on the session.
	bind func(s *session, params jsontext.Value) (func(store.Tx) (any, error), store.Scope, error)
	// call runs an operation on the session, and after what is to follow its reply.
	call  func(ctx context.Context, s *session, params jsontext.Value) (any, error)
	after func(s *session)
}

// operations holds every method that is answered. It is filled once, at the
// start, from the method table; a test sees to it that no method is missing.
var operations = map[string]*operation{}

func init() {
	onTx(schema.Reserve, governor.Reserve)
	onTx(schema.Bind, governor.Bind)
	onTx(schema.MarkUnknown, governor.MarkUnknown)
	onTx(schema.Settle, governor.Settle)
	onTx(schema.ExtendBudget, governor.ExtendBudget)
	onText(schema.GetSnapshot, governor.SnapshotText)
	onTx(schema.Check, governor.Check)
	onTx(schema.GetSummary, governor.Summary)
	onTx(schema.History, governor.History)
	onTx(schema.OpenTask, store.Open)
	onTx(schema.ClaimTask, store.Claim)
	onTx(schema.SubmitTask, store.Submit)
	onTx(schema.AcceptTask, store.Accept)
	onTx(schema.RejectTask, store.Reject)
	onTx(schema.CancelTask, store.Cancel)
	onTx(schema.GetTask, store.Get)
	onTx(schema.TaskHistory, store.History)
	onTx(schema.ListTasks, store.List)
	onPinnedTx(schema.Runs, runs)
	add(&operation{spec: schema.Transaction.Spec, bind: bindTransaction})

	onSession(schema.NativeAdapter, (*session).nativeAdapter)
	onSession(schema.Watch, (*session).watch)
	onSession(schema.Unwatch, (*session).unwatch)
	onSession(schema.Initialize, (*session).initialize)
	onSession(schema.Ping, (*session).ping)
	onSession(schema.Shutdown, (*session).stop)
	onSession(schema.Discover, (*session).discover)
	onSession(schema.Exit, (*session).needsNotification)
	onSession(schema.Cancel, (*session).cancelRequest)
	operations[schema.Watch.Name].after = (*session).announceWatches
}

func add(op *operation) { operations[op.spec.Name] = op }

// onTx binds a method to a function over a transaction.
func onTx[P, R any](m schema.Method[P, R], handler func(store.Tx, *P) (*R, error)) {
	onPinnedTx(m, func(_ pin, tx store.Tx, p *P) (*R, error) { return handler(tx, p) })
}

// onPinnedTx is onTx for a function that answers a pinned connection otherwise.
func onPinnedTx[P, R any](m schema.Method[P, R], handler func(pin, store.Tx, *P) (*R, error)) {
	add(&operation{spec: m.Spec, bind: bindTx(m.Spec, func(pinned pin, tx store.Tx, p *P) (any, error) {
		result, err := handler(pinned, tx, p)
		if err != nil {
			return nil, err
		}
		return pinned.redactResult(result), nil
	})})
}

// onText is onTx for a function whose result is the JSON text of the method's.
func onText[P, R any](m schema.Method[P, R], handler func(store.Tx, *P) (*schema.Pieces, error)) {
	add(&operation{spec: m.Spec, bind: bindTx(m.Spec, func(_ pin, tx store.Tx, p *P) (any, error) { return handler(tx, p) })})
}

// bindTx reads and checks the parameters before a transaction is begun.
func bindTx[P any](spec *schema.Spec, handler func(pin, store.Tx, *P) (any, error)) func(*session, jsontext.Value) (func(store.Tx) (any, error), store.Scope, error) {
	return func(s *session, params jsontext.Value) (func(store.Tx) (any, error), store.Scope, error) {
		p := new(P)
		if err := spec.Bind(params, p); err != nil {
			return nil, store.Scope{}, err
		}
		if err := s.pin().check(spec, p); err != nil {
			return nil, store.Scope{}, err
		}
		return func(tx store.Tx) (any, error) { return handler(s.pin(), tx, p) }, scopeOf(p), nil
	}
}

// onSession binds a method to a function over the session.
func onSession[P, R any](m schema.Method[P, R], handler func(*session, context.Context, *P) (*R, error)) {
	add(&operation{spec: m.Spec, call: func(ctx context.Context, s *session, params jsontext.Value) (any, error) {
		p := new(P)
		if m.Params.NumField() > 0 || len(params) > 0 && m.Name != schema.NativeAdapter.Name {
			if err := m.Bind(params, p); err != nil {
				return nil, err
			}
		}
		if err := s.pin().check(m.Spec, p); err != nil {
			return nil, err
		}
		return handler(s, ctx, p)
	}})
}

// begin starts the operation for a call.
func (op *operation) begin(s *session, c *call) {
	if op.call != nil {
		result, err := op.call(c.ctx, s, c.params)
		s.reply(c, result, err)
		if op.after != nil {
			op.after(s)
		}
		return
	}
	err := op.ready(s, c)
	switch {
	case err != nil:
		s.reply(c, nil, err)
	case op.spec.Is(schema.Mutates):
		s.submit(c)
	default:
		s.read(c)
	}
}

// ready reads the parameters of a call, unless the reader has done so in vain,
// and sees to what must come before it.
func (op *operation) ready(s *session, c *call) (err error) {
	if c.run != nil {
		return nil
	}
	if c.run, c.scope, err = op.bind(s, c.params); err == nil && op.needsMigration() {
		err = s.prepare(c.ctx)
	}
	return err
}

// needsMigration reports whether the retry accounting must be complete before the operation.
func (op *operation) needsMigration() bool {
	return strings.HasPrefix(op.spec.Name, "governor.") || op.spec == schema.Transaction.Spec
}

// runs answers a pinned connection with its own run only.
func runs(pinned pin, tx store.Tx, p *schema.RunsParams) (*schema.RunsPage, error) {
	if pinned.RunID == "" {
		return governor.Runs(tx, p)
	}
	run, err := governor.Run(tx, pinned.RunID)
	if err != nil {
		return nil, err
	}
	page := &schema.RunsPage{}
	if p.After < pinned.RunID {
		page.Items = append(page.Items, *run)
	}
	return page, nil
}
