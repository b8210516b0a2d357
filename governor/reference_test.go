package governor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// DESIGN.md, section 6: both writers compare rows as text, so equal calls must
// leave equal text. The audit of a file that the other writer made tells which
// calls led to it; they are made again on an empty store.

// recorded is a row of the other writer's audit, with what else tells about the call.
type recorded struct {
	run, action        string
	reservation, owner *string
	authority          schema.Authority
	details            string
}

func recordedCalls(t *testing.T, root string) (calls []recorded) {
	t.Helper()
	rows, err := reference.Open(t, root).Query(`SELECT a.run_id, a.action, a.reservation_id, r.owner_session, a.role, a.session_id, a.details
		FROM governor_audit a LEFT JOIN governor_reservation r USING (reservation_id) ORDER BY a.id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c recorded
		if err := rows.Scan(&c.run, &c.action, &c.reservation, &c.owner, &c.authority.Role, &c.authority.SessionID, &c.details); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return calls
}

// replayer makes recorded calls again.
type replayer struct {
	*ledger
	// ids maps the other writer's reservations to ours.
	ids map[string]*schema.Reservation
}

// setTask makes the task what it must have been when the call was made.
func (p *replayer) setTask(id int64, set func(*store.Task)) {
	p.t.Helper()
	err := p.Write(context.Background(), func(tx store.Tx) error {
		task, err := tx.Task(id)
		if err != nil || task == nil {
			return errors.Join(err, errors.New("no such task"))
		}
		task.Status = schema.TaskClaimed
		set(task)
		return tx.SaveTask(task)
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *replayer) play(c recorded) {
	p.t.Helper()
	who := caller{p.ledger, c.run, c.authority}
	var details struct {
		schema.ReserveInput
		ReworkGeneration int64         `json:"rework_generation"`
		SessionID        string        `json:"session_id"`
		Reason           string        `json:"reason"`
		Proof            schema.Proof  `json:"proof"`
		After            schema.Limits `json:"after"`
	}
	if err := json.Unmarshal([]byte(c.details), &details); err != nil {
		p.t.Fatal(err)
	}
	var r *schema.Reservation
	if c.reservation != nil && c.action != "reserve" {
		r = p.ids[*c.reservation]
		p.setTask(r.TaskID, func(task *store.Task) {
			if c.authority.Role == schema.Worker {
				task.OwnerSession = &c.authority.SessionID
			}
		})
	}
	switch c.action {
	case "reserve":
		p.setTask(details.TaskID, func(task *store.Task) {
			task.EvidenceGeneration, task.OwnerSession = details.ReworkGeneration, c.owner
		})
		// The order in which the host listed the resources is lost; any will do.
		slices.Reverse(details.Resources)
		details.Resources = append(details.Resources, details.Resources...)
		p.ids[*c.reservation] = who.reserve(asking{details.ReserveInput}).ok()
	case "bind":
		p.setTask(r.TaskID, func(task *store.Task) { task.OwnerSession = &details.SessionID })
		who.bind(r, details.SessionID).ok()
	case "markUnknown":
		who.markUnknownFor(r, details.Reason).ok()
	case "settle":
		who.settle(r, details.Proof).ok()
	case "extendBudget":
		l := details.After
		who.extendBudget(schema.ExtendBudgetInput{Reason: details.Reason,
			MaxActive: &l.MaxActive, MaxWriters: &l.MaxWriters, MaxCreated: &l.MaxCreated, MaxRetries: &l.MaxRetries}).ok()
	default:
		p.t.Fatalf("an unknown action %q", c.action)
	}
}

// comparable are the queries whose results must be equal: every column that is
// text of the call, and no ids or times.
var comparable = map[string]string{
	"reservations": "SELECT run_id, task_id, operation_key, payload, generation, mode, kind, state, owner_session, session_id, settlement FROM governor_reservation ORDER BY rowid",
	"holds":        "SELECT r.rowid, h.resource_key, h.mode FROM governor_reservation r JOIN governor_hold h USING (reservation_id) ORDER BY r.rowid, h.resource_key",
	"limits":       "SELECT * FROM governor_run ORDER BY run_id",
	"audit":        "SELECT a.id, a.run_id, r.rowid, a.action, a.role, a.session_id, a.details FROM governor_audit a LEFT JOIN governor_reservation r USING (reservation_id) ORDER BY a.id",
	"charges":      "SELECT r.rowid, c.rework_generation, c.retry_charge, c.source FROM governor_reservation r JOIN governor_retry_charge c USING (reservation_id) ORDER BY r.rowid",
}

func TestEqualCallsLeaveEqualText(t *testing.T) {
	t.Parallel()
	for _, name := range reference.Names(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs := t.TempDir()
			reference.Unpack(t, name, theirs)
			p := &replayer{newLedger(t), map[string]*schema.Reservation{}}
			p.exec("ATTACH '" + theirs + "/" + reference.FileName + "' AS theirs")
			p.exec("INSERT INTO task (id, title, run_id, created_at, updated_at) SELECT id, title, run_id, created_at, updated_at FROM theirs.task",
				"DETACH theirs")
			calls := recordedCalls(t, theirs)
			for _, c := range calls {
				p.play(c)
			}
			other := reference.Open(t, theirs)
			if reference.Rows(t, other, "SELECT 1 FROM sqlite_schema WHERE name = 'governor_retry_charge'") == "" {
				reference.Exec(t, other, reference.RetryCharge) // from before retry accounting
				reference.Exec(t, p.raw, "DELETE FROM governor_retry_charge")
			}
			for what, query := range comparable {
				if got, want := p.rows(query), reference.Rows(t, other, query); got != want {
					t.Errorf("%s: got\n%s\nthe other writer has\n%s", what, got, want)
				}
			}
			if len(calls) == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// TestPayloadText: resources sorted by UTF-16 code units, without duplicates,
// as JSON.stringify prints them.
func TestPayloadText(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		resources []string
		want      string
	}{
		"none":   {[]string{}, `[]`},
		"sorted": {[]string{"b", "a", "B", "aa", ""}, `["","B","a","aa","b"]`},
		"UTF-16, not UTF-8": {[]string{"\uffff", "\U0001f600", "\uffee", "\ue000", "\ud7ff", "\U0010ffff"},
			"[\"\ud7ff\",\"\U0001f600\",\"\U0010ffff\",\"\ue000\",\"\uffee\",\"\uffff\"]"},
		"escapes": {[]string{"\x00\b\t\n\v\f\r\x1f", "\x7f", `"\/`, "<>&'", "\u2028\u2029"},
			`["\u0000\b\t\n\u000b\f\r\u001f","\"\\/","<>&'","` + "\x7f" + `","` + "\u2028\u2029" + `"]`},
		"duplicates":   {[]string{"a", "b", "a", "b", "a"}, `["a","b"]`},
		"not the same": {[]string{"e\u0301", "\u00e9", "a", "a ", "a\x00"}, `["a","a\u0000","a ","` + "e\u0301\",\"\u00e9" + `"]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			r := lead.reserve(ask("k", lead.task("s")).reading(test.resources...)).ok()
			want := `{"task_id":1,"generation":0,"mode":"read","kind":"reuse","resources":` + test.want + `}`
			if got := l.rows("SELECT payload FROM governor_reservation"); got != "'"+want+"'\n" {
				t.Errorf("payload %s, want %s", got, want)
			}
			if got := l.rows("SELECT details FROM governor_audit"); got != `'{"operation_key":"k",`+want[1:len(want)-1]+`,"rework_generation":0,"retry_charge":0}'`+"\n" {
				t.Errorf("details %s", got)
			}
			encoded, err := schema.Encode(r.Resources)
			if err != nil || string(encoded) != test.want {
				t.Errorf("answered %s, %v", encoded, err)
			}
		})
	}
}

func TestSettlementText(t *testing.T) {
	t.Parallel()
	for want, proof := range map[string]schema.Proof{
		`{"kind":"never_started"}`: neverStarted,
		`{"kind":"terminal","outcome":"failed","quiescent":true,"evidence":" <1> & \"2\" ` + "\u2028\U0001f600" + `\u0001 "}`: terminal(schema.Failed, " <1> & \"2\" \u2028\U0001f600\x01 "),
	} {
		l := newLedger(t)
		lead := l.lead()
		lead.settle(lead.reserve(ask("k", lead.task("s"))).ok(), proof).ok()
		if got := l.rows("SELECT settlement FROM governor_reservation"); got != "'"+want+"'\n" {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
