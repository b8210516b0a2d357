package rpc

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// scopeOf says what a call may touch: its run, and where holds come or go, the
// resources that it names or those of the reservation that it changes. A bind
// shows in the details of a refusal elsewhere, so it counts as a change too.
func scopeOf(params any) store.Scope {
	var scope store.Scope
	if p, ok := params.(scoped); ok {
		run, _ := p.Scope()
		scope.Runs = []string{run}
	}
	switch p := params.(type) {
	case *schema.ReserveParams:
		scope.Resources, scope.Shared = p.Input.Resources, p.Input.Mode == schema.Read
		scope.Tasks, scope.Operations = []int64{p.Input.TaskID}, []string{p.Input.OperationKey}
	case *schema.BindParams:
		scope.Reservations = []string{p.Input.ReservationID}
	case *schema.MarkUnknownParams:
		scope.Reservations = []string{p.Input.ReservationID}
	case *schema.SettleParams:
		scope.Reservations = []string{p.Input.ReservationID}
	case *schema.ClaimParams:
		scope.Tasks = []int64{p.Input.TaskID}
	case *schema.TaskNoteParams:
		scope.Tasks = []int64{p.Input.TaskID}
	case *schema.RejectParams:
		scope.Tasks = []int64{p.Input.TaskID}
	}
	return scope
}
