package sqlite

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
)

// What the audit tells, entry by entry, and where it ends.
var (
	auditTransitions = &promise{"audit_transitions", Fault, "the audit leads every reservation to the state that it is in", "entries that do not lead to what the rows say"}
	auditBudget      = &promise{"audit_budget", Fault, "the audit leads the limits of every run to what they are", "limits that the audit does not explain"}
	pastLimits       = &promise{"past_limits", Fault, "no run was ever over a limit", "admissions that went over a limit when they were made"}
	pastHolds        = &promise{"past_holds", Fault, "no resource ever had a writer and another holder", "admissions that took a resource from another when they were made"}
	pastOrder        = &promise{"past_order", Fault, "no task ever had two active admissions, or went back", "admissions that overlapped, or came out of order"}

	replayPromises = []*promise{auditAdmission, auditTransitions, auditBudget, pastLimits, pastHolds, pastOrder}
)

// entry is an audit entry with the reservation that it is about.
type entry struct {
	number                       int64
	scope, action, role, details string
	// known says that the reservation is there. What is about one that is gone
	// is another check's affair, and not replayed.
	known bool
	admission
}

// replay follows the audit from its first entry and keeps books of its own:
// what is active, who holds what, where the limits are. No entry may break a
// rule at its moment, and at the end the books must agree with the rows.
type replay struct {
	v     *verification
	runs  map[string]*book
	work  map[string]*work
	tasks map[int64]task
	// held maps a resource to its holders.
	held map[string]holders
}

// task is what a task has been admitted for.
type task struct{ generation, charged, active int64 }

// book is what a run occupies.
type book struct {
	limits                   schema.Limits
	active, writers, created int64
}

// work is an admission that the audit has not settled yet.
type work struct {
	admission
	request request
	now     schema.State
	// bound is the session that the audit has bound it to.
	bound string
}

type holders struct{ readers, writers int }

func (v *verification) replay() error {
	p := &replay{v, map[string]*book{}, map[string]*work{}, map[int64]task{}, map[string]holders{}}
	const query = `SELECT a.id, a.run_id, a.action, a.role, a.details, r.rowid IS NOT NULL, ` + admissionColumns + `
		FROM governor_audit a LEFT JOIN governor_reservation r ON r.reservation_id = a.reservation_id AND r.run_id = a.run_id
			LEFT JOIN governor_retry_charge c ON c.reservation_id = r.reservation_id
		ORDER BY a.id`
	err := v.each(query, func(rows *sql.Rows) error {
		var e entry
		fields := []any{&e.number, &e.scope, &e.action, &e.role, &e.details, &e.known}
		if err := rows.Scan(append(fields, e.fields()...)...); err != nil {
			return err
		}
		p.next(&e)
		return nil
	})
	if err != nil {
		return err
	}
	p.end()
	return p.compareLimits()
}

func (p *replay) book(run string) *book {
	if p.runs[run] == nil {
		p.runs[run] = &book{limits: schema.DefaultLimits()}
	}
	return p.runs[run]
}

// broken records that an entry breaks a promise.
func (p *replay) broken(promise *promise, e *entry, explanation string, args ...any) {
	p.v.breach(promise, "governor_audit", fmt.Sprint(e.number), explanation, args...)
}

// next takes the next entry.
func (p *replay) next(e *entry) {
	if e.action == "extendBudget" {
		p.extend(e)
		return
	}
	if !e.known {
		return
	}
	if e.action == "reserve" {
		p.admit(e)
		return
	}
	w := p.work[e.id]
	if w == nil {
		p.broken(auditTransitions, e, "%s: %s, which is not active then", e.action, e.describe())
		return
	}
	switch e.action {
	case "bind":
		p.bind(e, w)
	case "markUnknown":
		p.markUnknown(e, w)
	case "settle":
		p.settle(e, w)
	}
}

// admit enters an admission into the books.
func (p *replay) admit(e *entry) {
	a := e.admission
	if !a.detailed(e.details) {
		p.broken(auditAdmission, e, "its details %.200q are not those of %s", e.details, a.describe())
	}
	if p.work[a.id] != nil {
		return // it is in the audit twice, which is a finding already
	}
	before := p.tasks[a.task]
	switch {
	case a.generation <= before.generation:
		p.broken(pastOrder, e, "%s comes after admission %d", a.describe(), before.generation)
	case before.active > 0:
		p.broken(pastOrder, e, "%s comes before an earlier one was settled", a.describe())
	}
	w := &work{admission: a, now: schema.Reserved}
	w.request, _ = readRequest(a.payload) // a finding already if it cannot be read
	p.tasks[a.task] = task{max(a.generation, before.generation), before.charged + a.charge, before.active + 1}
	p.work[a.id] = w
	p.count(e, w)
	p.hold(e, w)
}

// detailed says that details are those of the admission. An older writer did
// not record what an admission costs, and what it recorded is no longer in
// force once a migration has charged it.
func (a *admission) detailed(details string) bool {
	payload := strings.TrimSuffix(strings.TrimPrefix(a.payload, "{"), "}")
	begin := fmt.Sprintf(`{"operation_key":%s,%s`, quoted(a.key), payload)
	if a.charged && a.source == string(schema.FromAdmission) {
		return details == fmt.Sprintf(`%s,"rework_generation":%d,"retry_charge":%d}`, begin, a.rework, a.charge)
	}
	return details == begin+"}" || strings.HasPrefix(details, begin+`,"rework_generation":`)
}

// count adds an admission to what its run occupies.
func (p *replay) count(e *entry, w *work) {
	b := p.book(w.run)
	b.active++
	if w.mode == string(schema.Write) {
		b.writers++
	}
	if w.kind == string(schema.New) {
		b.created++
	}
	over := func(what string, count, limit int64) {
		if count > limit {
			p.broken(pastLimits, e, "%s was %s %d of the run %q, whose limit was %d", w.describe(), what, count, w.run, limit)
		}
	}
	over("active work", b.active, b.limits.MaxActive)
	if w.mode == string(schema.Write) {
		over("writer", b.writers, b.limits.MaxWriters)
	}
	if w.kind == string(schema.New) {
		over("new execution", b.created, b.limits.MaxCreated)
	}
	if w.source == string(schema.FromAdmission) { // migration may charge past the limit
		over("charged up to retry", p.tasks[w.task].charged, b.limits.MaxRetries)
	}
}

// hold takes the resources of an admission.
func (p *replay) hold(e *entry, w *work) {
	for _, key := range w.request.Resources {
		h := p.held[key]
		if w.mode == string(schema.Write) {
			h.writers++
		} else {
			h.readers++
		}
		p.held[key] = h
		if h.writers > 1 || h.writers == 1 && h.readers > 0 {
			p.broken(pastHolds, e, "%s took the resource %.200q, which others held", w.describe(), key)
		}
	}
}

// bind moves reserved work to running. Repeating it leaves no entry.
func (p *replay) bind(e *entry, w *work) {
	session := w.boundTo()
	switch {
	case w.now != schema.Reserved:
		p.broken(auditTransitions, e, "%s was bound when it was %s", w.describe(), w.now)
	case e.details != fmt.Sprintf(`{"generation":%d,"session_id":%s}`, w.generation, quoted(session)):
		p.broken(auditTransitions, e, "%s is bound by %.200q, but its row has the session %q", w.describe(), e.details, session)
	}
	w.now, w.bound = schema.Running, session
}

func (p *replay) markUnknown(e *entry, w *work) {
	details, err := readCanonical[uncertainty](e.details)
	switch {
	case w.now == schema.Unknown:
		p.broken(auditTransitions, e, "%s was marked unknown twice", w.describe())
	case err != nil || details.Generation != w.generation || blank(details.Reason):
		p.broken(auditTransitions, e, "%s was marked unknown by %.200q", w.describe(), e.details)
	}
	w.now = schema.Unknown
}

// settle gives back what the admission occupies.
func (p *replay) settle(e *entry, w *work) {
	switch {
	case w.active():
		p.broken(auditTransitions, e, "%s is settled here, but its row says that it is %s", w.describe(), w.state)
	case w.settlement != nil && e.details != fmt.Sprintf(`{"generation":%d,"proof":%s}`, w.generation, *w.settlement):
		p.broken(auditTransitions, e, "%s is settled by %.200q, but its row has the proof %.200q", w.describe(), e.details, *w.settlement)
	case w.bound != w.boundTo():
		p.broken(auditTransitions, e, "%s has the session %q, but was never bound to it", w.describe(), w.boundTo())
	}
	delete(p.work, w.id)
	t := p.tasks[w.task]
	t.active--
	p.tasks[w.task] = t
	b := p.book(w.run)
	b.active--
	if w.mode == string(schema.Write) {
		b.writers--
	}
	for _, key := range w.request.Resources {
		h := p.held[key]
		if w.mode == string(schema.Write) {
			h.writers--
		} else {
			h.readers--
		}
		if p.held[key] = h; h == (holders{}) {
			delete(p.held, key)
		}
	}
}

// extend follows the limits of a run.
func (p *replay) extend(e *entry) {
	b := p.book(e.scope)
	details, err := readCanonical[extension](e.details)
	before, after := details.Before, details.After
	switch {
	case err != nil || blank(details.Reason):
		p.broken(auditBudget, e, "its details %.200q are not those of an extension", e.details)
	case e.role != string(schema.Lead):
		p.broken(auditBudget, e, "the budget was extended by a %s", e.role)
	case before != b.limits:
		p.broken(auditBudget, e, "it begins at %s, but the run %q was at %s", spelt(before), e.scope, spelt(b.limits))
	case after == before || after.MaxActive < before.MaxActive || after.MaxWriters < before.MaxWriters || after.MaxCreated < before.MaxCreated || after.MaxRetries < before.MaxRetries:
		p.broken(auditBudget, e, "it leads from %s to %s, which is no extension", spelt(before), spelt(after))
	}
	if err == nil {
		b.limits = after
	}
}

// end compares what the audit leaves active with the rows.
func (p *replay) end() {
	for _, id := range slices.Sorted(maps.Keys(p.work)) {
		w := p.work[id]
		if string(w.now) != w.state || w.bound != w.boundTo() {
			p.v.breach(auditTransitions, "governor_reservation", id, "the audit leaves it %s with the session %q, but its row says %s with %q", w.now, w.bound, w.state, w.boundTo())
		}
	}
}

// compareLimits compares the limits at the end of the audit with those of the runs.
func (p *replay) compareLimits() error {
	const query = "SELECT run_id, CAST(max_active AS INTEGER), CAST(max_writers AS INTEGER), CAST(max_created AS INTEGER), CAST(max_retries AS INTEGER) FROM governor_run"
	seen := map[string]bool{}
	err := p.v.each(query, func(rows *sql.Rows) error {
		var run string
		var l schema.Limits
		if err := rows.Scan(&run, &l.MaxActive, &l.MaxWriters, &l.MaxCreated, &l.MaxRetries); err != nil {
			return err
		}
		seen[run] = true
		if want := p.book(run).limits; l != want {
			p.v.breach(auditBudget, "governor_run", run, "its limits are %s, but the audit leads to %s", spelt(l), spelt(want))
		}
		return nil
	})
	for _, run := range slices.Sorted(maps.Keys(p.runs)) {
		if b := p.runs[run]; b.limits != schema.DefaultLimits() && !seen[run] && err == nil {
			p.v.breach(auditBudget, "governor_run", run, "it has no limits of its own, but the audit leads to %s", spelt(b.limits))
		}
	}
	return err
}
