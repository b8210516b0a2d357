package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// lead is who calls where it does not matter who calls.
var lead = schema.Authority{Role: schema.Lead, SessionID: "root"}

// sidecar is a `taskforce serve` process, with the pipe of its host.
type sidecar struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bytes.Buffer
	lastID int
}

// reply is a response.
type reply struct {
	ID     jsontext.Value `json:"id"`
	Result jsontext.Value `json:"result"`
	Error  *wireError     `json:"error"`
}

type wireError struct {
	Code    int              `json:"code"`
	Message string           `json:"message"`
	Data    schema.ErrorData `json:"data"`
}

// serve starts a sidecar on the root folder. It is killed at the end of the
// test if it has not ended by then.
func serve(t *testing.T, root string, flags ...string) *sidecar {
	t.Helper()
	return launch(t, program(t, append([]string{"serve", "--root", root}, flags...)...))
}

// program is the program under test, killed at the end of the test.
func program(t *testing.T, args ...string) *exec.Cmd {
	return exec.CommandContext(t.Context(), "taskforce", args...)
}

// launch starts a command that is a sidecar, or becomes one. Its standard error
// is kept for the test unless the command has one already.
func launch(t *testing.T, cmd *exec.Cmd) *sidecar {
	t.Helper()
	s := &sidecar{t: t, cmd: cmd, stderr: &bytes.Buffer{}}
	if cmd.Stderr == nil {
		cmd.Stderr = s.stderr
	}
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // an error if the test has waited already, and if it was killed
		if t.Failed() && s.stderr.Len() > 0 {
			t.Logf("standard error of the sidecar:\n%s", s.stderr)
		}
	})
	return s
}

// write sends text as it is.
func (s *sidecar) write(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, text); err != nil {
		s.t.Fatal(err)
	}
}

// begins asks a sidecar that may not start, and reports whether it answers. One
// that has ended already cannot even be written to.
func (s *sidecar) begins() bool {
	s.t.Helper()
	if _, err := io.WriteString(s.in, `{"jsonrpc":"2.0","id":0,"method":"ping"}`+"\n"); err != nil {
		return false
	}
	_, err := s.out.ReadBytes('\n')
	return err == nil
}

// send sends a request and returns its id.
func (s *sidecar) send(method string, params any) int {
	s.t.Helper()
	s.lastID++
	s.write(fmt.Sprintf("{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":%q,\"params\":%s}\n", s.lastID, method, encode(s.t, params)))
	return s.lastID
}

// receive reads the next response.
func (s *sidecar) receive() reply {
	s.t.Helper()
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		_ = s.cmd.Wait()
		s.t.Fatalf("the sidecar has ended (%v): %s", s.cmd.ProcessState, s.stderr)
	}
	var r reply
	decode(s.t, line, &r)
	return r
}

// receiveInto reads the next response and files it under the id of its request.
func (s *sidecar) receiveInto(replies map[int]reply) {
	s.t.Helper()
	r := s.receive()
	id, err := strconv.Atoi(string(r.ID))
	if err != nil {
		s.t.Fatalf("a response to request %s", r.ID)
	}
	replies[id] = r
}

// receiveUntil reads responses up to the one to the request.
func (s *sidecar) receiveUntil(id int) map[int]reply {
	s.t.Helper()
	replies := map[int]reply{}
	for replies[id].ID == nil {
		s.receiveInto(replies)
	}
	return replies
}

// call sends a request and returns its response.
func (s *sidecar) call(method string, params any) reply {
	s.t.Helper()
	id := s.send(method, params)
	r := s.receive()
	if string(r.ID) != fmt.Sprint(id) {
		s.t.Fatalf("%s: the response is to request %s, not %d", method, r.ID, id)
	}
	return r
}

// refused makes a call that must fail with the code, and returns its error.
func (s *sidecar) refused(code schema.Code, method string, params any) *wireError {
	s.t.Helper()
	return s.call(method, params).refused(s.t, code)
}

// refused checks that a response is an error of the code, and that the error is
// the one that the table declares.
func (r reply) refused(t *testing.T, code schema.Code) *wireError {
	t.Helper()
	if r.Error == nil {
		t.Fatalf("want %s, got the result %s", code, r.Result)
	}
	e, spec := r.Error, code.Spec()
	if e.Data.Code != code {
		t.Fatalf("want %s, got %s: %s", code, e.Data.Code, e.Message)
	}
	number := spec.Number
	if e.Data.Reason == schema.ReasonParameters {
		number = schema.InvalidParams
	}
	if e.Code != number || e.Data.Retryable != spec.Retryable || e.Message == "" {
		t.Errorf("%s: got %+v, want number %d, retryable %v and a message", code, e, number, spec.Retryable)
	}
	return e
}

// result makes a call that must succeed.
func result[R, P any](s *sidecar, m schema.Method[P, R], params P) *R {
	s.t.Helper()
	return accepted[R](s.t, s.call(m.Name, params))
}

// accepted checks that a response is a result.
func accepted[R any](t *testing.T, r reply) *R {
	t.Helper()
	if r.Error != nil {
		t.Fatalf("got %s: %s", r.Error.Data.Code, r.Error.Message)
	}
	into := new(R)
	decode(t, r.Result, into)
	return into
}

// openTask opens a task that the session owns, or nobody if it is "".
func (s *sidecar) openTask(run, session string) int64 {
	s.t.Helper()
	task := result(s, schema.OpenTask, schema.OpenParams{RunID: run, Authority: lead, Input: schema.OpenInput{Title: "a task"}})
	if session != "" {
		result(s, schema.ClaimTask, schema.ClaimParams{RunID: run, Authority: lead,
			Input: schema.ClaimInput{TaskID: task.TaskID, Owner: session, OwnerSession: session}})
	}
	return task.TaskID
}

// reserving are the parameters of the n-th admission of a task, from 0.
func reserving(run string, task, n int64, mode schema.Mode, kind schema.Kind, resources ...string) schema.ReserveParams {
	return schema.ReserveParams{RunID: run, Authority: lead, Input: schema.ReserveInput{
		OperationKey: fmt.Sprintf("task %d, admission %d", task, n), TaskID: task, Generation: n, Mode: mode, Kind: kind,
		Resources: append([]string{}, resources...),
	}}
}

// settling are the parameters that settle a reservation that was never bound.
func settling(r *schema.Reservation) schema.SettleParams {
	return schema.SettleParams{RunID: r.RunID, Authority: lead, Input: schema.SettleInput{
		ReservationID: r.ReservationID, Generation: r.Generation, Proof: schema.Proof{Kind: schema.NeverStarted},
	}}
}

// end closes the sidecar's input and returns its exit status.
func (s *sidecar) end() int {
	s.t.Helper()
	if err := s.in.Close(); err != nil {
		s.t.Error(err)
	}
	return s.wait()
}

// refusesToStart checks that a command ends with status 1 and says why in one
// line, which has all these parts.
func (s *sidecar) refusesToStart(parts ...string) {
	s.t.Helper()
	if status := s.end(); status != 1 {
		s.t.Errorf("%v: exit status %d, want 1", s.cmd.Args, status)
	}
	line := s.stderr.String()
	if !strings.HasPrefix(line, "taskforce: ") || !strings.HasSuffix(line, "\n") || strings.Count(line, "\n") != 1 {
		s.t.Errorf("%v: standard error is not one line of taskforce: %q", s.cmd.Args, line)
	}
	for _, part := range parts {
		if !strings.Contains(line, part) {
			s.t.Errorf("%v: standard error is %q, want %q in it", s.cmd.Args, line, part)
		}
	}
}

// wait returns the exit status of the sidecar, after the end of its output.
func (s *sidecar) wait() int {
	s.t.Helper()
	if _, err := io.Copy(io.Discard, s.out); err != nil {
		s.t.Error(err)
	}
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		s.t.Error(err)
	}
	return s.cmd.ProcessState.ExitCode()
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := schema.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// contents maps every path under a folder to its mode and bytes; it is empty
// for a folder that does not exist.
func contents(folder string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		var data []byte
		if info.Mode().IsRegular() {
			data, err = os.ReadFile(path)
		}
		files[path] = info.Mode().String() + string(data)
		return err
	})
	return files, err
}
