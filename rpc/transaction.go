package rpc

import (
	"errors"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/go-json-experiment/json/jsontext"
)

// bindTransaction reads every call of a transaction before the first is run.
func bindTransaction(s *session, params jsontext.Value) (func(store.Tx) (any, error), store.Scope, error) {
	var p schema.TransactionParams
	var scope store.Scope
	if err := schema.Transaction.Bind(params, &p); err != nil {
		return nil, scope, err
	}
	steps := make([]func(store.Tx) (any, error), len(p.Calls))
	for i, call := range p.Calls {
		op := operations[call.Method]
		if op == nil || !op.spec.Is(schema.Composes) {
			return nil, scope, failedCall(i, call, schema.Errorf(schema.ErrMethodNotFound, "a transaction cannot contain %q", call.Method))
		}
		step, touched, err := op.bind(s, call.Params)
		if err != nil {
			return nil, scope, failedCall(i, call, err)
		}
		steps[i], scope = step, scope.Join(touched)
	}
	return func(tx store.Tx) (any, error) { return runSteps(tx, p.Calls, steps) }, scope, nil
}

func runSteps(tx store.Tx, calls []schema.TransactionCall, steps []func(store.Tx) (any, error)) (any, error) {
	result := &schema.TransactionResult{Results: make([]jsontext.Value, len(steps))}
	for i, step := range steps {
		value, err := step(tx)
		if err == nil {
			result.Results[i], err = schema.Encode(value)
		}
		if err != nil {
			return nil, failedCall(i, calls[i], err)
		}
	}
	return result, nil
}

// failedCall adds to an error which call of the transaction failed.
func failedCall(index int, call schema.TransactionCall, err error) error {
	var known *schema.Error
	if !errors.As(err, &known) {
		return err
	}
	failed := *known
	failed.Details.Call = &schema.FailedCall{Index: int64(index), Method: call.Method}
	return &failed
}
