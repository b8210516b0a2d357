package main

import (
	"slices"

	"github.com/dsh-taskforce/sidecar/schema"
)

// detail says which members of an error's data depend on its code.
type detail struct {
	// always are the members that are there whenever the code is answered.
	always []string
	// sometimes are those that are there for some of the code's reasons.
	sometimes []string
}

// details lists the members by code; a code that is not listed has none. A test
// holds every refusal of the clients' transcripts against it.
var details = map[schema.Code]detail{
	schema.ErrGovernorConflict:    {always: []string{"reason"}, sometimes: []string{"violations", "execution", "status", "state"}},
	schema.ErrGovernorFence:       {always: []string{"fence"}},
	schema.ErrBudgetExhausted:     {always: []string{"budget"}},
	schema.ErrResourceBusy:        {always: []string{"holders"}},
	schema.ErrSchedulerCapability: {always: []string{"blockers"}},
	schema.ErrTerminal:            {always: []string{"status"}},
	schema.ErrStatus:              {always: []string{"reason", "status"}},
	schema.ErrTaskConflict:        {always: []string{"reason"}},
	schema.ErrNotLead:             {always: []string{"reason"}},
	schema.ErrInput:               {always: []string{"reason"}, sometimes: []string{"violations", "supported"}},
	schema.ErrInvalidRequest:      {sometimes: []string{"id"}},
}

// detailsOf returns the members of one code's data. Any refusal may come from
// a transaction, and then names the call that failed.
func detailsOf(code string) detail {
	d := details[schema.Code(code)]
	return detail{d.always, slices.Concat(d.sometimes, []string{"call"})}
}
