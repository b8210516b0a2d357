package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/dsh-taskforce/sidecar/governor/model"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// linearHistory records calls with the times of their sending and of their
// answer, and what the clients learn from each other.
type linearHistory struct {
	start time.Time

	mu    sync.Mutex
	calls []*linearCall
	// admitted are the reservations that somebody was told of, asked are the
	// requests of all admissions.
	admitted    []schema.Reservation
	asked       []schema.ReserveParams
	generations map[int64]int64
}

// linearCall is one call of the history.
type linearCall struct {
	model.Call
	client int
	// over is when the call was answered, or when its sidecar was dead.
	sent, over time.Duration
	// reply is nil if the sidecar died first.
	reply *reply
}

func (h *linearHistory) now() time.Duration { return time.Since(h.start) }

// send enters a call into the history.
func (h *linearHistory) send(client int, c model.Call) *linearCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	sent := &linearCall{Call: c, client: client, sent: h.now()}
	h.calls = append(h.calls, sent)
	if p, ok := c.Params.(schema.ReserveParams); ok {
		h.asked = append(h.asked, p)
	}
	return sent
}

// answer completes it. A nil reply means that the sidecar died.
func (h *linearHistory) answer(c *linearCall, r *reply) error {
	at := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	c.reply, c.over = r, at
	if r == nil || r.Error != nil || c.Method != schema.Reserve.Name {
		return nil
	}
	var admitted schema.Reservation
	if err := json.Unmarshal(r.Result, &admitted); err != nil {
		return err
	}
	h.admitted = append(h.admitted, admitted)
	h.generations[admitted.TaskID] = max(h.generations[admitted.TaskID], admitted.Generation)
	return nil
}

// check returns an error if the history is not linearizable, with the name of
// a picture of it. The snapshots are the last state of every run; their audit
// tells which operation key a reservation's identity stands for.
func (h *linearHistory) check(setup []model.Call, snapshots []*schema.Snapshot) error {
	names, err := linearNames(snapshots)
	if err != nil {
		return err
	}
	var operations []porcupine.Operation
	for _, c := range h.calls {
		if c.reply != nil && c.reply.Error != nil && c.reply.Error.Data.Retryable {
			continue // the store was busy, and nothing was done
		}
		op, err := c.operation(names)
		if err != nil {
			return err
		}
		operations = append(operations, op)
	}
	m := linearModel(setup)
	result, info := porcupine.CheckOperationsVerbose(m, operations, linearTimeout)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return errLinearUndecided
	}
	picture, err := linearPicture(m, info)
	return errors.Join(&notLinearizable{len(operations), picture}, err)
}

// notLinearizable is a history that no order explains.
type notLinearizable struct {
	calls   int
	picture string
}

func (e *notLinearizable) Error() string {
	return fmt.Sprintf("the history of %d calls is not linearizable; its picture is %s", e.calls, e.picture)
}

// admittedTwice names an operation key with two reservations.
type admittedTwice struct{ name string }

func (e *admittedTwice) Error() string { return e.name + " was admitted twice" }

// operation is the call in porcupine's form and the model's names.
func (c *linearCall) operation(names map[string]string) (porcupine.Operation, error) {
	op := porcupine.Operation{ClientId: c.client, Input: c.named(names), Call: int64(c.sent), Output: lost, Return: int64(c.over)}
	if c.reply == nil || c.reply.Error != nil && c.reply.Error.Data.Code == schema.ErrStoreUnknown {
		return op, nil
	}
	answer, err := c.answer(names)
	op.Output = linearText(answer)
	return op, err
}

// named is the call with the model's identity of its reservation.
func (c *linearCall) named(names map[string]string) model.Call {
	call := c.Call
	switch p := call.Params.(type) {
	case schema.BindParams:
		p.Input.ReservationID = names[p.Input.ReservationID]
		call.Params = p
	case schema.MarkUnknownParams:
		p.Input.ReservationID = names[p.Input.ReservationID]
		call.Params = p
	case schema.SettleParams:
		p.Input.ReservationID = names[p.Input.ReservationID]
		call.Params = p
	}
	return call
}

// answer is what the call was answered, with the model's identities and no times.
func (c *linearCall) answer(names map[string]string) (model.Answer, error) {
	if c.reply.Error != nil {
		return model.Answer{Code: c.reply.Error.Data.Code}, nil
	}
	switch c.Method {
	case schema.GetSnapshot.Name:
		s, err := linearDecode[schema.Snapshot](c.reply.Result)
		for i := range s.Reservations {
			s.Reservations[i].ReservationID = names[s.Reservations[i].ReservationID]
		}
		for i := range s.RetryCharges {
			s.RetryCharges[i].ReservationID = names[s.RetryCharges[i].ReservationID]
		}
		for i := range s.Holds {
			s.Holds[i].ReservationID = names[s.Holds[i].ReservationID]
		}
		return model.Answer{Result: s}, err
	case schema.ExtendBudget.Name:
		l, err := linearDecode[schema.Limits](c.reply.Result)
		return model.Answer{Result: l}, err
	case schema.ClaimTask.Name:
		r, err := linearDecode[schema.ClaimResult](c.reply.Result)
		r.CreatedAt, r.UpdatedAt = "", ""
		return model.Answer{Result: r}, err
	case schema.RejectTask.Name:
		r, err := linearDecode[schema.RejectResult](c.reply.Result)
		r.CreatedAt, r.UpdatedAt = "", ""
		return model.Answer{Result: r}, err
	case schema.SubmitTask.Name:
		r, err := linearDecode[schema.Task](c.reply.Result)
		r.CreatedAt, r.UpdatedAt = "", ""
		return model.Answer{Result: r}, err
	}
	r, err := linearDecode[schema.Reservation](c.reply.Result)
	r.ReservationID = names[r.ReservationID]
	return model.Answer{Result: r}, err
}

func linearDecode[R any](text jsontext.Value) (*R, error) {
	into := new(R)
	return into, json.Unmarshal(text, into)
}

// linearNames reads from the audit which run and operation key each
// reservation's identity stands for. Two identities for one key are a doubled admission.
func linearNames(snapshots []*schema.Snapshot) (map[string]string, error) {
	names := map[string]string{}
	for _, s := range snapshots {
		for _, entry := range s.Audit {
			if entry.Action != "reserve" {
				continue
			}
			var details struct {
				OperationKey string `json:"operation_key"`
			}
			if err := json.Unmarshal(entry.Details, &details); err != nil {
				return nil, err
			}
			name := model.ID(s.RunID, details.OperationKey)
			for _, other := range names {
				if other == name {
					return nil, &admittedTwice{name}
				}
			}
			names[*entry.ReservationID] = name
		}
	}
	return names, nil
}

// latest is a copy of the last few items.
func latest[V any](list []V) []V { return slices.Clone(list[max(len(list)-6, 0):]) }
