package rpc_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/dsh-taskforce/sidecar/rpc"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// memory is a store that keeps tasks and nothing else, and that a test can hold
// in the middle of a write.
type memory struct {
	writes chan func()
	// held is closed while writes may run.
	held chan struct{}

	mu    sync.Mutex
	tasks []schema.Task
	// submitted and reads count calls; open counts transactions under way.
	submitted, reads, open int
	// runs is what governor.runs finds.
	runs []string
	// versions and changed are what a watcher sees.
	versions map[string]store.Version
	changed  []func()
	// fail is returned by reads, once each.
	fail []error
	// afterVersion is called once, after a version was read.
	afterVersion func()
}

func newMemory(t *testing.T) *memory {
	m := &memory{writes: make(chan func(), 1000), held: make(chan struct{}), versions: map[string]store.Version{}}
	close(m.held)
	var worker sync.WaitGroup
	worker.Go(func() {
		for write := range m.writes {
			write()
		}
	})
	t.Cleanup(func() { close(m.writes); worker.Wait() })
	return m
}

// hold makes every transaction wait until release.
func (m *memory) hold() (release func()) {
	held := make(chan struct{})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = held
	return func() { close(held) }
}

func (m *memory) gate() chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

func (m *memory) count(n *int, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*n += by
}

func (m *memory) get(n *int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *n
}

// WriteNow implements [store.Store].
func (m *memory) WriteNow(context.Context, func(store.Tx) error) (bool, error) { return false, nil }

// Submit implements [store.Store].
func (m *memory) Submit(ctx context.Context, fn func(store.Tx) error, done func(error)) {
	m.count(&m.submitted, 1)
	m.writes <- func() {
		if ctx.Err() != nil {
			done(ctx.Err())
			return
		}
		m.count(&m.open, 1)
		<-m.gate()
		err := contained(fn, &memoryTx{memory: m})
		m.count(&m.open, -1)
		done(err)
	}
}

// contained turns a panic into an error, as every engine has to.
func contained(fn func(store.Tx) error, tx store.Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return fn(tx)
}

// Read implements [store.Store].
func (m *memory) Read(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.count(&m.reads, 1)
	m.mu.Lock()
	if len(m.fail) > 0 {
		err := m.fail[0]
		m.fail = m.fail[1:]
		m.mu.Unlock()
		return err
	}
	m.mu.Unlock()
	m.count(&m.open, 1)
	defer m.count(&m.open, -1)
	<-m.gate()
	return fn(&memoryTx{memory: m})
}

// Write implements [store.Store].
func (m *memory) Write(ctx context.Context, fn func(store.Tx) error) error {
	outcome := make(chan error, 1)
	m.Submit(ctx, fn, func(err error) { outcome <- err })
	return <-outcome
}

// Watch implements [store.Store].
func (m *memory) Watch(ctx context.Context, changed func()) error {
	m.mu.Lock()
	m.changed = append(m.changed, changed)
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	m.changed = nil
	m.mu.Unlock()
	return nil
}

// change gives runs another version and tells the watchers once.
func (m *memory) change(runs ...string) {
	m.mu.Lock()
	for _, run := range runs {
		m.versions[run] = store.Version{Audit: m.versions[run].Audit + 1}
	}
	watchers := m.changed
	m.mu.Unlock()
	for _, changed := range watchers {
		changed()
	}
}

// failing makes the next reads fail.
func (m *memory) failing(errs ...error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = append(m.fail, errs...)
}

// watchers counts the goroutines that follow the store.
func (m *memory) watchers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.changed)
}

// Identity implements [store.Store].
func (m *memory) Identity() store.Identity { return store.Identity{ID: "memory"} }

// Close implements [store.Store].
func (m *memory) Close() error { return nil }

// memoryTx is a transaction of a memory. What it does not implement is not called.
type memoryTx struct {
	store.Tx
	*memory
}

func (tx *memoryTx) Now() time.Time                                  { return time.Unix(0, 0) }
func (tx *memoryTx) AppendTaskEvent(string, *schema.TaskEvent) error { return nil }
func (tx *memoryTx) Unaccounted() ([]store.Unaccounted, error)       { return nil, nil }
func (tx *memoryTx) Limits(string) (schema.Limits, error)            { return schema.DefaultLimits(), nil }
func (tx *memoryTx) Usage(string) (store.Usage, error)               { return store.Usage{}, nil }

func (tx *memoryTx) Nested(fn func(store.Tx) error) error { return fn(tx) }

func (tx *memoryTx) Runs(string, int64) ([]string, error) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.runs, nil
}

func (tx *memoryTx) InsertTask(task *store.Task) error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	task.TaskID = int64(len(tx.tasks) + 1)
	tx.tasks = append(tx.tasks, task.Task)
	return nil
}

func (tx *memoryTx) Tasks(_ string, _ schema.TaskStatus, page store.Page) ([]schema.Task, error) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.tasks[min(int(page.After), len(tx.tasks)):], nil
}

func (tx *memoryTx) Task(int64) (*store.Task, error) { panic("a fault of the store") }

func (tx *memoryTx) Version(run string) (store.Version, error) {
	tx.mu.Lock()
	version, after := tx.versions[run], tx.afterVersion
	tx.afterVersion = nil
	tx.mu.Unlock()
	if after != nil {
		after()
	}
	return version, nil
}

// host is the other side of a session that is served in this process.
type host struct {
	t      *testing.T
	in     *io.PipeWriter
	unread *io.PipeReader
	out    *bufio.Reader
	cancel context.CancelCauseFunc
	served chan error
}

// connect serves a session on the store. The test has to end it.
func connect(t *testing.T, s store.Store, options rpc.Options) *host {
	in, toHost := io.Pipe()
	fromHost, out := io.Pipe()
	h := &host{t: t, in: toHost, unread: fromHost, out: bufio.NewReader(fromHost), served: make(chan error, 1)}
	ctx, cancel := context.WithCancelCause(t.Context())
	h.cancel = cancel
	go func() {
		err := rpc.Serve(ctx, s, in, out, options)
		out.Close()
		in.Close()
		h.served <- err
	}()
	return h
}

// write sends lines; goroutines of a test may, so it does not end the test.
func (h *host) write(lines ...string) {
	h.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(h.in, line+"\n"); err != nil {
			h.t.Error(err)
			return
		}
	}
}

// reply is a response or a notification.
type reply struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
	Error  *struct {
		Code int              `json:"code"`
		Data schema.ErrorData `json:"data"`
	} `json:"error"`
}

// read returns the next reply, and the error of the output.
func (h *host) read() (r reply, err error) {
	line, err := h.out.ReadBytes('\n')
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(line, &r)
}

// receive returns the next reply.
func (h *host) receive() reply {
	h.t.Helper()
	r, err := h.read()
	if err != nil {
		h.t.Fatalf("no reply: %v", err)
	}
	return r
}

// expect receives replies with these ids, in this order.
func (h *host) expect(ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		if r := h.receive(); string(r.ID) != id {
			h.t.Fatalf("a reply to %s, want one to %s", r.ID, id)
		}
	}
}

// code receives a reply that must be an error.
func (h *host) code(id string, code schema.Code) {
	h.t.Helper()
	r := h.receive()
	if string(r.ID) != id || r.Error == nil || r.Error.Data.Code != code {
		h.t.Fatalf("got %s %+v, want %s for %s", r.ID, r.Error, code, id)
	}
}

// end closes the input, and returns what Serve returns and how many replies came before.
func (h *host) end() (replies int, err error) {
	h.in.Close()
	for {
		if _, err := h.read(); err != nil {
			return replies, <-h.served
		}
		replies++
	}
}

// orderly ends a session of which no replies are left.
func (h *host) orderly() {
	h.t.Helper()
	if replies, err := h.end(); err != nil || replies > 0 {
		h.t.Errorf("the session ends with %v after %d replies that nobody asked for", err, replies)
	}
}

func request(id any, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":%s}`, id, method, params)
}

func notification(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

const caller = `"run",{"role":"lead","sessionId":"s"}`

func opening(id any, title string) string {
	return request(id, "task.open", fmt.Sprintf(`[{"title":%q},%s]`, title, caller))
}

func listing(id any) string { return request(id, "task.list", `[{},`+caller+`]`) }

func cancelling(id any) string { return notification("$/cancelRequest", fmt.Sprintf(`{"id":%v}`, id)) }
