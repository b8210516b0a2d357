package governor_test

import (
	"fmt"
	"slices"

	"github.com/dsh-taskforce/sidecar/governor/model"
	"github.com/dsh-taskforce/sidecar/schema"
	"pgregory.net/rapid"
)

// The calls that the machine draws: mostly such as a host could make in the
// state that the model is in, with something odd about a few.

// The names that are drawn. Some differ in spaces only, and two resources are
// ordered otherwise by UTF-16 code units than by bytes.
var (
	modelRuns = []string{"run", "run "}
	sessions  = []string{"s", "t", "lead"}
	resources = []string{"a", "b", "b ", "\U00010000", "\uffff"}
	blanks    = []string{"", " ", "\t\u00a0\ufeff\u2029"}
	numbers   = []int64{-1, 0, 1, 2, schema.MaxInteger, schema.MaxInteger + 1}
)

// draw draws from a machine's state.
type draw struct {
	*rapid.T
	model *model.Ledger
}

func pick[V any](d draw, label string, values []V) V {
	return rapid.SampledFrom(values).Draw(d.T, label)
}

// oneIn is true once in n times. The odd value stands in the middle, because
// rapid draws the first and the last more often, and shrinks to the first.
func (d draw) oneIn(n int, label string) bool {
	values := make([]bool, n)
	values[n/2] = true
	return pick(d, label, values)
}

// text is one of the values, and seldom a blank.
func (d draw) text(label string, values ...string) string {
	if d.oneIn(60, label+" is blank") {
		return pick(d, label, blanks)
	}
	return pick(d, label, values)
}

// number is the value, and seldom another.
func (d draw) number(label string, value int64) int64 {
	if d.oneIn(20, label+" is odd") {
		return pick(d, label, numbers)
	}
	return value
}

// methods are the calls in the proportion in which they are drawn.
var methods = []string{
	schema.Reserve.Name, schema.Reserve.Name, schema.Reserve.Name, schema.Reserve.Name, schema.Reserve.Name, schema.Reserve.Name,
	schema.Bind.Name, schema.Bind.Name, schema.MarkUnknown.Name, schema.Settle.Name, schema.Settle.Name, schema.Settle.Name,
	schema.ExtendBudget.Name, schema.GetSnapshot.Name, schema.OpenTask.Name, schema.OpenTask.Name,
	schema.ClaimTask.Name, schema.ClaimTask.Name, schema.SubmitTask.Name, schema.SubmitTask.Name,
	schema.RejectTask.Name, schema.RejectTask.Name, schema.AcceptTask.Name, schema.CancelTask.Name, schema.GetTask.Name,
}

func (d draw) call() model.Call {
	method := pick(d, "method", methods)
	return model.Call{Method: method, Params: d.params(method), Unknown: method != schema.GetSnapshot.Name && d.oneIn(60, "unknown member")}
}

// asking is a call of reserve.
func (d draw) asking() model.Call {
	return model.Call{Method: schema.Reserve.Name, Params: d.reserve(), Unknown: d.oneIn(60, "unknown member")}
}

func (d draw) params(method string) any {
	switch method {
	case schema.Reserve.Name:
		return d.reserve()
	case schema.Bind.Name, schema.MarkUnknown.Name, schema.Settle.Name:
		return d.transition(method)
	case schema.ExtendBudget.Name:
		run := pick(d, "run", modelRuns)
		limits := d.limits(run)
		return schema.ExtendBudgetParams{RunID: run, Authority: d.authority(nil), Input: schema.ExtendBudgetInput{
			Reason: d.text("reason", "more"), MaxActive: d.extended("active", limits.MaxActive), MaxWriters: d.extended("writers", limits.MaxWriters),
			MaxCreated: d.extended("created", limits.MaxCreated), MaxRetries: d.extended("retries", limits.MaxRetries)}}
	case schema.GetSnapshot.Name:
		return schema.RunParams{RunID: d.text("run", modelRuns...)}
	case schema.OpenTask.Name:
		return schema.OpenParams{RunID: d.text("run", modelRuns...), Authority: d.authority(nil),
			Input: schema.OpenInput{Title: d.text("title", "a task"), Note: d.note()}}
	}
	task, run := d.task(d.fit(method))
	by := d.authority(d.owner(task))
	switch method {
	case schema.ClaimTask.Name:
		session := by.SessionID
		if d.oneIn(3, "for another session") {
			session = d.text("owner session", sessions...)
		}
		return schema.ClaimParams{RunID: run, Authority: by,
			Input: schema.ClaimInput{TaskID: task, Owner: d.text("owner", "Ann", "Bob"), OwnerSession: session}}
	case schema.RejectTask.Name:
		return schema.RejectParams{RunID: run, Authority: by, Input: schema.RejectInput{TaskID: task, Reason: d.text("reason", "not good enough")}}
	case schema.GetTask.Name:
		return schema.TaskParams{RunID: run, Authority: by, Input: schema.TaskInput{TaskID: task}}
	}
	return schema.TaskNoteParams{RunID: run, Authority: by, Input: schema.TaskNoteInput{TaskID: task, Note: d.note()}}
}

// reserve asks for an admission, sometimes with the request of an earlier one.
func (d draw) reserve() schema.ReserveParams {
	if len(d.model.Reservations) > 0 && d.oneIn(6, "repeats a request") {
		return d.repeated(pick(d, "request", d.model.Reservations))
	}
	task, run := d.task(d.idle())
	key := fmt.Sprint(len(d.model.Reservations))
	if d.oneIn(10, "any key") {
		key = d.text("key", "0", "1", "1 ", "2")
	}
	keys := resources
	if d.oneIn(60, "a blank resource") {
		keys = append(slices.Clone(keys), blanks...)
	}
	return schema.ReserveParams{RunID: run, Authority: d.authority(d.owner(task)), Input: schema.ReserveInput{
		OperationKey: key, TaskID: task, Generation: d.number("generation", d.model.Generation(task)),
		Mode:      schema.Mode(d.text("mode", string(schema.Read), string(schema.Write))),
		Kind:      schema.Kind(d.text("kind", string(schema.Reuse), string(schema.New), string(schema.Retry))),
		Resources: rapid.SliceOfN(rapid.SampledFrom(keys), 0, 3).Draw(d.T, "resources"),
	}}
}

// repeated is the request of an earlier admission, seldom altered.
func (d draw) repeated(r model.Reservation) schema.ReserveParams {
	in := schema.ReserveInput{OperationKey: r.Key, TaskID: r.TaskID, Generation: r.Expected, Mode: r.Mode, Kind: r.Kind, Resources: r.Resources}
	if d.oneIn(4, "altered") {
		in.Resources = append([]string{pick(d, "resource", resources)}, in.Resources...)
	}
	return schema.ReserveParams{RunID: r.RunID, Authority: d.authority(r.Owner), Input: in}
}

func (d draw) transition(method string) any {
	id, run, generation := "nobody's", pick(d, "run", modelRuns), int64(1)
	var owner *string
	session := pick(d, "session", sessions)
	if len(d.model.Reservations) > 0 && !d.oneIn(20, "no reservation") {
		r := d.reservation()
		id, run, generation, owner = r.ReservationID, r.RunID, r.Generation, r.Owner
		if current := d.owner(r.TaskID); current != nil && !d.oneIn(8, "another session") {
			session = *current
		}
	}
	if d.oneIn(20, "other run") {
		run = d.text("run", modelRuns...)
	}
	by, generation := d.authority(owner), d.number("generation", generation)
	switch method {
	case schema.Bind.Name:
		return schema.BindParams{RunID: run, Authority: by, Input: schema.BindInput{ReservationID: id, Generation: generation, SessionID: session}}
	case schema.MarkUnknown.Name:
		return schema.MarkUnknownParams{RunID: run, Authority: by,
			Input: schema.MarkUnknownInput{ReservationID: id, Generation: generation, Reason: d.text("reason", "lost")}}
	}
	return schema.SettleParams{RunID: run, Authority: by, Input: schema.SettleInput{ReservationID: id, Generation: generation, Proof: d.proof()}}
}

// reservation is one of the latest, or any.
func (d draw) reservation() model.Reservation {
	list := d.model.Reservations
	if !d.oneIn(5, "any reservation") {
		list = list[max(len(list)-4, 0):]
	}
	return pick(d, "reservation", list)
}

func (d draw) proof() schema.Proof {
	if d.oneIn(30, "odd proof") {
		return schema.Proof{Kind: schema.ProofKind(d.text("kind", "never_started", "terminal", "timeout")), Outcome: schema.Outcome(d.text("outcome", "", "succeeded", "lost")),
			Quiescent: rapid.Bool().Draw(d.T, "quiescent"), Evidence: d.text("evidence", "", "log")}
	}
	return pick(d, "proof", []schema.Proof{terminal(schema.Succeeded, "log"), neverStarted, terminal(schema.Failed, "log")})
}

// idle are the tasks without active work, or all if there is none.
func (d draw) idle() (list []model.Task) {
	for _, task := range d.model.Tasks {
		if !slices.ContainsFunc(d.model.Reservations, func(r model.Reservation) bool { return r.TaskID == task.TaskID && r.State != schema.Settled }) {
			list = append(list, task)
		}
	}
	if len(list) == 0 || d.oneIn(6, "any task") {
		return d.model.Tasks
	}
	return list
}

// fit are the tasks that the call can move, or all if there is none.
func (d draw) fit(method string) (list []model.Task) {
	for _, task := range d.model.Tasks {
		if method == schema.AcceptTask.Name && task.Status == schema.TaskSubmitted ||
			method == schema.RejectTask.Name && (task.Status == schema.TaskSubmitted || task.Status.Terminal()) {
			list = append(list, task)
		}
	}
	if len(list) == 0 || d.oneIn(6, "any task") {
		return d.model.Tasks
	}
	return list
}

// task is one of the tasks and its run; seldom one that is not there, or another run.
func (d draw) task(list []model.Task) (id int64, run string) {
	if d.oneIn(30, "no task") {
		return pick(d, "task", append(numbers, int64(len(d.model.Tasks))+1)), d.text("run", modelRuns...)
	}
	task := pick(d, "task", list)
	if d.oneIn(20, "other run") {
		return task.TaskID, d.text("run", modelRuns...)
	}
	return task.TaskID, *task.RunID
}

func (d draw) owner(task int64) *string {
	if task < 1 || task > int64(len(d.model.Tasks)) {
		return nil
	}
	return d.model.Tasks[task-1].OwnerSession
}

// authority is a lead, or a worker, who is the owner most of the time.
func (d draw) authority(owner *string) schema.Authority {
	a := schema.Authority{Role: schema.Role(d.text("role", string(schema.Lead), string(schema.Lead), string(schema.Worker))), SessionID: d.text("caller", sessions...)}
	if owner != nil && !d.oneIn(5, "not the owner") {
		a.SessionID = *owner
	}
	return a
}

func (d draw) limits(run string) schema.Limits {
	if limits, extended := d.model.Limits[run]; extended {
		return limits
	}
	return schema.DefaultLimits()
}

// extended is a new limit, most of the time none.
func (d draw) extended(label string, limit int64) *int64 {
	if rapid.Bool().Draw(d.T, label) {
		return nil
	}
	n := d.number(label, limit+pick(d, label, []int64{0, 1, 2, -1}))
	return &n
}

func (d draw) note() *string {
	if rapid.Bool().Draw(d.T, "without a note") {
		return nil
	}
	note := pick(d, "note", []string{"why", "because"})
	return &note
}
