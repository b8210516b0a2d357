package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
	"github.com/dsh-taskforce/sidecar/governor/model"
	"github.com/dsh-taskforce/sidecar/schema"
)

// The reference model as porcupine wants it: a history is linearizable if there
// is an order of its calls, each at some moment between its sending and its
// answer, in which the model gives the same answers.

// linearState is a ledger with a text that is equal for ledgers that answer
// alike from now on, whatever order they came about in.
type linearState struct {
	ledger *model.Ledger
	key    string
}

// lost is the answer of a call whose sidecar died before it answered. Such a
// call took effect before the death, or never will.
const lost = ""

// linearModel begins with the calls that open the tasks.
func linearModel(setup []model.Call) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any {
			l := model.New()
			for _, c := range setup {
				l.Do(c)
			}
			return []any{newLinearState(l)}
		},
		Step: func(state, input, output any) []any {
			next := state.(linearState).ledger.Clone()
			switch answer := linearText(next.Do(input.(model.Call))); output {
			case answer:
				return []any{newLinearState(next)}
			case lost:
				return []any{newLinearState(next), state}
			}
			return nil
		},
		Equal: func(a, b any) bool { return a.(linearState).key == b.(linearState).key },
		DescribeOperation: func(input, output any) string {
			c := input.(model.Call)
			if output == lost {
				output = "?"
			}
			return fmt.Sprintf("%s %s -> %s", c.Method, linearEncode(c.Params), output)
		},
		DescribeState: func(state any) string { return state.(linearState).key },
	}
	return m.ToModel()
}

func newLinearState(l *model.Ledger) linearState {
	list := slices.Clone(l.Reservations)
	slices.SortFunc(list, func(a, b model.Reservation) int { return cmp.Compare(a.ReservationID, b.ReservationID) })
	return linearState{l, linearEncode(model.Ledger{Tasks: l.Tasks, Reservations: list, Limits: l.Limits})}
}

// linearText is an answer as it is compared: the code of a refusal, or the
// result without what depends on the order of calls that do not touch each other.
func linearText(a model.Answer) string {
	if a.Code != "" {
		return string(a.Code)
	}
	if s, ok := a.Result.(*schema.Snapshot); ok {
		s.Audit = nil
		slices.SortFunc(s.Reservations, func(a, b schema.Reservation) int { return cmp.Compare(a.ReservationID, b.ReservationID) })
		slices.SortFunc(s.RetryCharges, func(a, b schema.RetryCharge) int { return cmp.Compare(a.ReservationID, b.ReservationID) })
		model.SortHolds(s.Holds)
	}
	return linearEncode(a.Result)
}

func linearEncode(v any) string {
	text, err := schema.Encode(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
