package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// runTasks is how many tasks a run has, here and in the driver's workload: few
// enough that no statement reads a history of notable length.
const runTasks = 50

const unlimited = 1 << 40

// admission is one reserve, as a host asks for it.
type admission struct {
	run, key, session string
	task              int64
	resources         []string
}

// times is what a run of reserves took.
type times struct {
	// PerSecond is how many reserves were committed in a second.
	PerSecond float64 `json:"perSecond"`
	// Microseconds is the median time of a transaction.
	Microseconds float64 `json:"microseconds"`
}

// reserves opens a task for each admission, then measures the admissions alone.
func (d *database) reserves(ctx context.Context, name string, count, perCommit int) (*times, error) {
	admissions, err := d.open(ctx, name, count)
	if err != nil {
		return nil, err
	}
	var commits []time.Duration
	start := time.Now()
	for batch := range slices.Chunk(admissions, perCommit) {
		began := time.Now()
		if err := d.commit(ctx, batch); err != nil {
			return nil, err
		}
		commits = append(commits, time.Since(began))
	}
	elapsed := time.Since(start)
	slices.Sort(commits)
	return &times{
		PerSecond:    float64(count) / elapsed.Seconds(),
		Microseconds: float64(commits[len(commits)/2].Nanoseconds()) / 1000,
	}, nil
}

// open opens runs of runTasks tasks each, whose limits are out of the way.
func (d *database) open(ctx context.Context, name string, count int) ([]admission, error) {
	if err := d.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return nil, err
	}
	var list []admission
	for i := range count {
		run := fmt.Sprintf("%s-%d", name, i/runTasks)
		if i%runTasks == 0 {
			if _, err := d.write(ctx, "openRun", run, unlimited, unlimited, unlimited, unlimited); err != nil {
				return nil, err
			}
		}
		a, err := d.openTask(ctx, run, i)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, d.exec(ctx, "COMMIT")
}

func (d *database) openTask(ctx context.Context, run string, i int) (admission, error) {
	session := fmt.Sprintf("session-%d", i)
	id, err := d.write(ctx, "openTask", fmt.Sprintf("task %d", i), "worker", session, run, now(), now())
	return admission{
		run: run, key: fmt.Sprintf("task %d, first attempt", id), session: session, task: id,
		resources: []string{fmt.Sprintf("repo:part-%d", id)},
	}, err
}

// commit runs a batch in one transaction, each reserve in a savepoint of its
// own if there are several.
func (d *database) commit(ctx context.Context, batch []admission) error {
	if err := d.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, a := range batch {
		if len(batch) == 1 {
			if err := d.reserve(ctx, a); err != nil {
				return err
			}
			continue
		}
		if err := d.exec(ctx, "SAVEPOINT one"); err != nil {
			return err
		}
		if err := d.reserve(ctx, a); err != nil {
			return err
		}
		if err := d.exec(ctx, "RELEASE one"); err != nil {
			return err
		}
	}
	return d.exec(ctx, "COMMIT")
}

// payload is the normalized request as the contract stores it.
type payload struct {
	TaskID     int64    `json:"task_id"`
	Generation int64    `json:"generation"`
	Mode       string   `json:"mode"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
}

// reserve runs the nine SELECTs and four INSERTs of an admission.
func (d *database) reserve(ctx context.Context, a admission) error {
	facts, err := d.facts(ctx, a)
	if err != nil {
		return err
	}
	request := payload{a.task, facts.generation, "write", "new", a.resources}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	details, err := json.Marshal(struct {
		OperationKey string `json:"operation_key"`
		payload
		ReworkGeneration int64 `json:"rework_generation"`
		RetryCharge      int64 `json:"retry_charge"`
	}{a.key, request, facts.rework, 0})
	if err != nil {
		return err
	}
	id := uuid.NewString() // random, as the contract's own store draws them
	rows := []struct {
		name string
		args []any
	}{
		{"addReservation", []any{id, a.run, a.task, a.key, string(text), facts.generation + 1, "write", "new", facts.owner}},
		{"addCharge", []any{id, facts.rework, 0}},
		{"addHold", []any{id, a.resources[0], "write"}},
		{"addAudit", []any{a.run, id, "reserve", "lead", "lead-session", string(details), now()}},
	}
	for _, row := range rows {
		if _, err := d.write(ctx, row.name, row.args...); err != nil {
			return err
		}
	}
	return nil
}

// facts is what an admission is decided on.
type facts struct {
	owner              string
	generation, rework int64
}

func (d *database) facts(ctx context.Context, a admission) (facts, error) {
	var f facts
	var text, other string
	var n, m, o, p int64
	questions := []struct {
		name string
		args []any
		into []any
	}{
		{"task", []any{a.task}, []any{&text, &other, &f.owner, &f.rework}},
		{"replay", []any{a.run, a.key}, []any{&text, &text, &text, &text}},
		{"generation", []any{a.task}, []any{&f.generation}},
		{"admitted", []any{a.task}, []any{&text}},
		{"limits", []any{a.run}, []any{&n, &m, &o, &p}},
		{"active", []any{a.run}, []any{&n, &m}},
		{"created", []any{a.run}, []any{&n}},
		{"retries", []any{a.task}, []any{&n, &m}},
		{"holders", []any{a.resources[0], "write"}, []any{&text, &other}},
	}
	for _, q := range questions {
		if err := d.read(ctx, q.name, q.args, q.into...); err != nil {
			return f, err
		}
	}
	return f, nil
}

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }
