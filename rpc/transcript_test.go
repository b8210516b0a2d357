package rpc_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the transcripts again, with the answers that are given now")

// A transcript is what a host sends and what the sidecar answers. The format is
// described in testdata/README.md, which also has the table of all transcripts.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			replay(t, path)
		})
	}
}

// Every transcript is a row of the table, and every row names transcripts that exist.
func TestTranscriptsAreListed(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, name := range regexp.MustCompile(`transcripts/([a-z0-9-]+\.txtar)`).FindAllSubmatch(table, -1) {
		listed[string(name[1])] = true
	}
	paths, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if !listed[filepath.Base(path)] {
			t.Errorf("testdata/README.md does not list %s", path)
		}
		delete(listed, filepath.Base(path))
	}
	for name := range listed {
		t.Errorf("testdata/README.md lists %s, which does not exist", name)
	}
}

// transcript is a replay under way.
type transcript struct {
	t       *testing.T
	root    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	headers bool
	status  int
	// barriers counts the requests that tell when everything before is answered.
	barriers int
	// ids are the names of the UUIDs that the sidecar has drawn, in order of appearance.
	ids []string
	// unlock ends the transaction that keeps the sidecar's writes waiting.
	unlock func()
}

func replay(t *testing.T, path string) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &transcript{t: t, root: t.TempDir()}
	session := -1
	var flags []string
	for i, file := range archive.Files {
		switch file.Name {
		case "options":
			flags = r.configure(string(file.Data))
		case "session":
			session = i
		default:
			t.Fatalf("unknown section %q", file.Name)
		}
	}
	if session < 0 {
		t.Fatal("no section \"session\"")
	}
	r.start(flags)
	want := string(archive.Files[session].Data)
	got := r.play(want)
	if *update {
		archive.Files[session].Data = []byte(got)
		if err := os.WriteFile(path, txtar.Format(archive), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("the session went otherwise:\n%s", differing(want, got))
	}
}

// configure reads the lines `flags`, `framing headers` and `status`.
func (r *transcript) configure(options string) (flags []string) {
	for line := range strings.Lines(options) {
		keyword, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch keyword {
		case "flags":
			flags = strings.Fields(value)
		case "framing":
			r.headers = value == "headers"
		case "status":
			r.status, _ = strconv.Atoi(value)
		default:
			r.t.Fatalf("unknown option %q", line)
		}
	}
	return flags
}

func (r *transcript) start(flags []string) {
	r.cmd = sidecarCommand(r.t, r.root, flags...)
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		r.t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	r.out = bufio.NewReader(out)
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
}

// play sends what the session says and returns it with the answers that came.
func (r *transcript) play(session string) string {
	var log strings.Builder
	ended := false
	for line := range strings.Lines(session) {
		if strings.HasPrefix(line, "<") {
			continue
		}
		log.WriteString(line)
		keyword, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch keyword {
		case "", "#":
		case ">":
			r.send(r.expand(text) + "\n")
			log.WriteString(r.answers())
		case ">>":
			r.send(r.expand(text))
		case ">=":
			r.send(framed(r.expand(text)))
			log.WriteString(r.answers())
		case "lock":
			log.WriteString(r.answers()) // it has a store by then
			r.lock()
		case "unlock":
			r.unlock()
			r.unlock = nil
			log.WriteString(r.answers())
		case "end":
			ended = true
			log.WriteString(r.end())
		default:
			r.t.Fatalf("unknown line %q", line)
		}
	}
	if !ended {
		log.WriteString(r.end())
	}
	return log.String()
}

func framed(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

func (r *transcript) send(text string) {
	if _, err := io.WriteString(r.in, text); err != nil {
		r.t.Fatalf("the sidecar does not read: %v", err)
	}
}

// answers returns what the sidecar answers to everything sent so far.
func (r *transcript) answers() string {
	r.barriers++
	id := fmt.Sprintf(`"barrier %d"`, r.barriers)
	request := `{"jsonrpc":"2.0","id":` + id + `,"method":"governor.runs"}` // waits for the writes before it
	if r.unlock != nil {
		request = `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`
	}
	if r.headers {
		r.send(framed(request))
	} else {
		r.send(request + "\n")
	}
	var log strings.Builder
	for {
		line, err := r.receive()
		if err != nil {
			r.t.Fatalf("the sidecar has ended (%v) after:\n%s", err, &log)
		}
		if strings.Contains(line, `"id":`+id) {
			return log.String()
		}
		log.WriteString(line)
	}
}

// end closes the input and returns the last answers.
func (r *transcript) end() string {
	if err := r.in.Close(); err != nil {
		r.t.Error(err)
	}
	var log strings.Builder
	for {
		line, err := r.receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.t.Fatal(err)
		}
		log.WriteString(line)
	}
	_ = r.cmd.Wait() // the status is judged here
	if status := r.cmd.ProcessState.ExitCode(); status != r.status {
		r.t.Errorf("exit status %d, want %d", status, r.status)
	}
	return log.String()
}

// receive returns the next frame of the output as a line of the log.
func (r *transcript) receive() (string, error) {
	line, err := r.out.ReadString('\n')
	if err != nil {
		return "", err
	}
	if length, ok := strings.CutPrefix(line, "Content-Length: "); ok {
		n, err := strconv.Atoi(strings.TrimSuffix(length, "\r\n"))
		if err != nil {
			return "", err
		}
		body := make([]byte, 2+n) // after an empty line
		if _, err := io.ReadFull(r.out, body); err != nil {
			return "", err
		}
		return "<= " + r.normal(strings.TrimPrefix(string(body), "\r\n")) + "\n", nil
	}
	return "< " + r.normal(line), nil
}

// lock makes the sidecar's writes wait.
func (r *transcript) lock() {
	db, err := sql.Open("sqlite", filepath.Join(r.root, sqlite.FileName))
	if err != nil {
		r.t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		r.t.Fatal(err)
	}
	r.unlock = func() {
		if _, err := db.Exec("ROLLBACK"); err != nil {
			r.t.Error(err)
		}
		db.Close()
	}
}

var (
	uuid       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timestamp  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	rawByte    = regexp.MustCompile(`\\x[0-9a-f]{2}`)
	repetition = regexp.MustCompile(`\\\*(\d+)\(([^)]*)\)`)
)

// normal replaces what is another each time.
func (r *transcript) normal(line string) string {
	line = timestamp.ReplaceAllString(line, "$$time")
	return uuid.ReplaceAllStringFunc(line, func(id string) string {
		for n, known := range r.ids {
			if known == id {
				return fmt.Sprintf("$id%d", n+1)
			}
		}
		r.ids = append(r.ids, id)
		return fmt.Sprintf("$id%d", len(r.ids))
	})
}

// expand replaces repetitions, raw bytes and the names of UUIDs.
func (r *transcript) expand(text string) string {
	text = repetition.ReplaceAllStringFunc(text, func(s string) string {
		part := repetition.FindStringSubmatch(s)
		n, _ := strconv.Atoi(part[1])
		return strings.Repeat(part[2], n)
	})
	text = rawByte.ReplaceAllStringFunc(text, func(s string) string {
		b, _ := strconv.ParseUint(s[2:], 16, 8)
		return string([]byte{byte(b)})
	})
	for n := len(r.ids); n > 0; n-- {
		text = strings.ReplaceAll(text, fmt.Sprintf("$id%d", n), r.ids[n-1])
	}
	return text
}

// differing shows the first line that differs, and the lines before it.
func differing(want, got string) string {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b bytes.Buffer
	for i := range max(len(wants), len(gots)) {
		var w, g string
		if i < len(wants) {
			w = wants[i]
		}
		if i < len(gots) {
			g = gots[i]
		}
		if w != g {
			fmt.Fprintf(&b, "line %d\nwant %s\ngot  %s", i+1, w, g)
			break
		}
		fmt.Fprintln(&b, "    ", w)
	}
	return b.String()
}
