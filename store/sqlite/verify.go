package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// The verifications of all engines are alike.
type (
	// Verification is what [Store.Verify] found.
	Verification = store.Verification
	// Rows counts what the ledger retains.
	Rows = store.Rows
	// Breach is a row that breaks a promise.
	Breach = store.Breach
)

// listed is how many breaches of one promise are listed. The others are counted.
const listed = 100

// promise is something that holds after every transaction of either writer, so
// that whatever breaks it was not done by one.
type promise struct {
	name string
	// level is how bad a breach is.
	level Level
	// kept is said if nothing breaks it; broken what it means that something does.
	kept, broken string
}

// pass examines the rows for some promises.
type pass struct {
	promises []*promise
	run      func(*verification) error
}

// passes are made in this order, in which their findings are told.
var passes = allPasses()

func allPasses() []pass {
	var list []pass
	for _, r := range rules {
		list = append(list, r.pass())
	}
	return append(list,
		pass{[]*promise{auditComplete, eventsComplete}, (*verification).numbering},
		pass{admissionPromises, (*verification).admissions},
		pass{replayPromises, (*verification).replay},
	)
}

// promises are those of all passes, each once.
func promises() []*promise {
	var list []*promise
	for _, pass := range passes {
		for _, p := range pass.promises {
			if !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// verification is an examination of the rows.
type verification struct {
	*examination
	breaches map[*promise][]Breach
	// broken counts the breaches of each promise, those that are not listed too.
	broken map[*promise]int
}

// Verify recomputes everything that derives from the retained rows and compares
// it with what they say, on one consistent state. It changes nothing, and a
// store that was opened ReadOnly is enough for it.
func (s *Store) Verify(ctx context.Context) (*Verification, error) {
	var result *Verification
	err := s.Read(ctx, func(t store.Tx) error {
		v, err := verify(&examination{context.WithoutCancel(ctx), s, t.(*tx).conn})
		if err != nil {
			return err
		}
		result, err = v.result()
		return err
	})
	return result, err
}

// verify makes every pass. It returns an error if the file cannot be read for
// another reason than that it is damaged, which is a finding.
func verify(e *examination) (*verification, error) {
	v := &verification{e, map[*promise][]Breach{}, map[*promise]int{}}
	for _, p := range passes {
		err := classify(p.run(v), "the database cannot be read")
		if err == nil {
			continue
		}
		if !isDamage(err) {
			return nil, err
		}
		for _, promise := range p.promises {
			v.unanswered(promise, err)
		}
	}
	return v, nil
}

// breach records that a row breaks a promise.
func (v *verification) breach(p *promise, table, row, explanation string, args ...any) {
	v.broken[p]++
	if v.broken[p] <= listed {
		v.breaches[p] = append(v.breaches[p], Breach{Level: p.level, Check: p.name, Table: table, Row: row, Explanation: fmt.Sprintf(explanation, args...)})
	}
}

// unanswered records that the file is too damaged to tell.
func (v *verification) unanswered(p *promise, err error) {
	v.broken[p]++
	v.breaches[p] = append(v.breaches[p], Breach{Level: Fault, Check: p.name, Explanation: "the question cannot be answered: " + messageOf(err)})
}

// result lists the breaches, and says of each promise how many are not listed.
func (v *verification) result() (*Verification, error) {
	result := &Verification{Sound: true, StoreID: v.store.Identity().ID, Breaches: []Breach{}}
	for _, p := range promises() {
		result.Breaches = append(result.Breaches, v.breaches[p]...)
		if more := v.broken[p] - len(v.breaches[p]); more > 0 {
			result.Breaches = append(result.Breaches, Breach{Level: p.level, Check: p.name, Explanation: fmt.Sprintf("and %d more", more)})
		}
	}
	for _, b := range result.Breaches {
		result.Sound = result.Sound && b.Level != Fault
	}
	const count = `SELECT (SELECT count(*) FROM task), (SELECT count(*) FROM task_event), (SELECT count(*) FROM governor_reservation),
		(SELECT count(*) FROM governor_hold), (SELECT count(*) FROM governor_retry_charge), (SELECT count(*) FROM governor_audit)`
	rows := &result.Rows
	err := v.scan(count, &rows.Tasks, &rows.Events, &rows.Reservations, &rows.Holds, &rows.Charges, &rows.Audit)
	if err = classify(err, "the rows cannot be counted"); isDamage(err) {
		err = nil // which is among the findings
	}
	return result, err
}

// findings sums every promise up for the doctor.
func (v *verification) findings() []Finding {
	var findings []Finding
	for _, p := range promises() {
		findings = append(findings, v.finding(p))
	}
	return findings
}

// finding sums a promise up.
func (v *verification) finding(p *promise) Finding {
	breaches := v.breaches[p]
	if len(breaches) == 0 {
		return Finding{Level: Fine, Name: p.name, Explanation: p.kept}
	}
	var offenders []string
	for _, b := range breaches {
		if b.Table == "" {
			return Finding{Level: b.Level, Name: p.name, Explanation: b.Explanation}
		}
		offenders = append(offenders, b.Row)
	}
	return Finding{Level: p.level, Name: p.name, Explanation: p.broken + ": " + some(offenders, v.broken[p])}
}

// isDamage says that an error means a damaged file.
func isDamage(err error) bool {
	var known *schema.Error
	return errors.As(err, &known) && known.Code == schema.ErrStoreCorrupt
}
