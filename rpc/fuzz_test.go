package rpc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/dsh-taskforce/sidecar/rpc"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/txtar"
)

// The fuzz targets. Their seeds are the inputs of the transcripts and what
// fuzzing has found (testdata/fuzz); `go test` runs the seeds, `make fuzz` more.

// seeds are the inputs of every transcript, piece by piece and whole.
func seeds(f *testing.F) (pieces, sessions []string) {
	f.Helper()
	paths, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		var session strings.Builder
		for line := range strings.Lines(string(archive.Files[len(archive.Files)-1].Data)) {
			keyword, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if keyword != ">" && keyword != ">>" && keyword != ">=" {
				continue
			}
			if text = (&transcript{}).expand(text); len(text) > 32<<10 {
				continue // what is large is slow to vary
			}
			pieces = append(pieces, text)
			switch keyword {
			case ">":
				text += "\n"
			case ">=":
				text = framed(text)
			}
			session.WriteString(text)
		}
		sessions = append(sessions, session.String())
	}
	return pieces, sessions
}

// The guard admits exactly what is strict JSON within the bounds.
func FuzzGuard(f *testing.F) {
	pieces, _ := seeds(f)
	for _, piece := range pieces {
		f.Add([]byte(piece))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		err := rpc.Guard(slices.Clone(frame))
		if fault := strictFault(frame); (err == nil) != (fault == "") {
			t.Errorf("the guard says %v, the reference %q", err, fault)
		}
	})
}

// strictFault is a slow reference for the guard, on encoding/json. It returns
// what is wrong with a frame, or "".
func strictFault(frame []byte) string {
	switch {
	case !utf8.Valid(frame):
		return "UTF-8"
	case !json.Valid(frame):
		return "JSON"
	}
	decoder := json.NewDecoder(bytes.NewReader(frame))
	decoder.UseNumber()
	w := &walker{decoder: decoder, frame: frame}
	w.value(0, false)
	return w.fault
}

// walker visits every token of a valid JSON text.
type walker struct {
	decoder *json.Decoder
	frame   []byte
	fault   string
}

// value visits one value. id says that it is the id of a request.
func (w *walker) value(depth int, id bool) {
	token, raw := w.next()
	switch v := token.(type) {
	case json.Delim:
		if depth++; depth > 64 {
			w.fault = "depth"
		}
		names := map[string]bool{}
		envelope := depth == 1 || depth == 2 && bytes.HasPrefix(bytes.TrimLeft(w.frame, " \t\r\n"), []byte("["))
		for w.decoder.More() {
			name := ""
			if v == '{' {
				token, _ := w.next()
				if name = token.(string); names[name] {
					w.fault = "duplicate"
				}
				names[name] = true
			}
			w.value(depth, v == '{' && envelope && name == "id")
		}
		w.next()
	case json.Number:
		if !id {
			w.number(raw)
		}
	}
}

// next returns the next token and its text, and looks for lone surrogates in it.
func (w *walker) next() (json.Token, string) {
	begin := w.decoder.InputOffset()
	token, err := w.decoder.Token()
	if err != nil {
		panic(err) // the text is valid
	}
	raw := strings.TrimLeft(string(w.frame[begin:w.decoder.InputOffset()]), " \t\r\n,:")
	if _, isString := token.(string); isString && loneSurrogate(raw) {
		w.fault = "surrogate"
	}
	return token, raw
}

func loneSurrogate(raw string) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] != 'u' {
			continue
		}
		unit, _ := strconv.ParseUint(raw[i+1:i+5], 16, 16)
		i += 4
		switch {
		case unit >= 0xdc00 && unit < 0xe000:
			return true
		case unit >= 0xd800 && unit < 0xdc00:
			if !strings.HasPrefix(raw[i+1:], `\u`) {
				return true
			}
			low, _ := strconv.ParseUint(raw[i+3:i+7], 16, 16)
			if low < 0xdc00 || low >= 0xe000 {
				return true
			}
			i += 6
		}
	}
	return false
}

func (w *walker) number(raw string) {
	if len(raw) > 64 {
		w.fault = "length"
		return
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(raw), "e"); ok {
		n, err := strconv.Atoi(exponent)
		if err != nil || n > 400 || n < -400 {
			w.fault = "exponent"
		}
	}
}

// Ids are the same exactly if they are by value.
func FuzzIDs(f *testing.F) {
	for _, pair := range [][2]string{
		{"1", "1.0"}, {"1", "10e-1"}, {"-0", "0.00e9"}, {"1e2", "100"}, {"12", "1.2E+1"}, {`"1"`, "1"}, {`"a"`, `"\u0061"`},
		{"9007199254740993", "9007199254740992"}, {"-1", "1"}, {"0.1", "1e-1"}, {"10", "1"}, {"null", "null"}, {"1e400", "10e399"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		want, ok := sameByValue(a, b)
		if !ok {
			t.Skip()
		}
		if got := rpc.SameID(jsontext.Value(a), jsontext.Value(b)); got != want {
			t.Errorf("%s and %s: got %v, want %v", a, b, got, want)
		}
	})
}

// sameByValue compares two ids by arithmetic; ok is false for what is no id, and
// for numbers too large for it.
func sameByValue(a, b string) (same, ok bool) {
	var ids [2]any
	for i, text := range []string{a, b} {
		if strictFault([]byte(`{"id":`+text+`}`)) != "" || strings.TrimSpace(text) != text {
			return false, false
		}
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&ids[i]); err != nil {
			return false, false
		}
		switch id := ids[i].(type) {
		case json.Number:
			if _, exponent, _ := strings.Cut(strings.ToLower(string(id)), "e"); len(exponent) > 4 {
				return false, false
			}
			rational, _ := new(big.Rat).SetString(string(id))
			ids[i] = rational.RatString()
		case string:
			ids[i] = []string{id}
		case nil:
			return false, false // null has no value that could collide
		default:
			return false, false
		}
	}
	return reflect.DeepEqual(ids[0], ids[1]), true
}

// Frames do not depend on how the input arrives, none is over the limit, and
// lines are what they look like.
func FuzzFramer(f *testing.F) {
	pieces, sessions := seeds(f)
	for _, input := range slices.Concat(pieces, sessions) {
		f.Add([]byte(input))
	}
	const limit = 100
	f.Fuzz(func(t *testing.T, input []byte) {
		frames, headers := rpc.Frames(bytes.NewReader(input), limit)
		pieceByPiece, _ := rpc.Frames(iotest.OneByteReader(bytes.NewReader(input)), limit)
		if !slices.Equal(frames, pieceByPiece) {
			t.Errorf("whole %q, byte by byte %q", frames, pieceByPiece)
		}
		for _, frame := range frames {
			if len(frame) > limit {
				t.Errorf("a frame of %d bytes", len(frame))
			}
		}
		if !headers {
			if want := lines(string(input), limit); !slices.Equal(frames, want) {
				t.Errorf("got %q, want %q", frames, want)
			}
		}
	})
}

// lines is a reference for framing by newlines.
func lines(input string, limit int) (frames []string) {
	input = strings.TrimPrefix(input, "\ufeff")
	input = strings.TrimLeft(input, " \t\r\n")
	for line := range strings.Lines(input) {
		text := strings.Trim(line, " \t\r\n")
		switch {
		case len(strings.TrimRight(line, "\r\n")) > limit:
			frames = append(frames, rpc.TooLong)
		case text != "":
			frames = append(frames, text)
		}
	}
	return frames
}

// What the schema accepts is decoded, and means the same when it is sent again.
func FuzzBind(f *testing.F) {
	pieces, _ := seeds(f)
	for _, piece := range pieces {
		var request struct {
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal([]byte(piece), &request) == nil && schema.Lookup(request.Method) != nil {
			f.Add(request.Method, []byte(request.Params))
		}
	}
	for method, input := range inputs {
		f.Add(method, []byte(`[`+input+`,`+caller+`]`))
		f.Add(method, []byte(`{"input":`+input+`,"runId":"run","authority":{"role":"worker","sessionId":"s"}}`))
	}
	f.Fuzz(func(t *testing.T, method string, params []byte) {
		spec := schema.Lookup(method)
		if spec == nil || rpc.Guard([]byte(`{"params":`+string(params)+`}`)) != nil {
			t.Skip()
		}
		first := reflect.New(spec.Params).Interface()
		if err := spec.Bind(params, first); err != nil {
			checkViolations(t, err)
			return
		}
		again, err := schema.Encode(first)
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		second := reflect.New(spec.Params).Interface()
		if err := spec.Bind(again, second); err != nil {
			t.Fatalf("%s was accepted, %s is not: %v", params, again, err)
		}
		if text, err := schema.Encode(second); err != nil || !bytes.Equal(text, again) {
			t.Errorf("%s became %s (%v)", again, text, err)
		}
	})
}

// checkViolations checks that it was the schema that refused.
func checkViolations(t *testing.T, err error) {
	t.Helper()
	var known *schema.Error
	if !errors.As(err, &known) || known.Number() != schema.InvalidParams || len(known.Details.Violations) == 0 {
		t.Fatalf("refused without violations: %v", err)
	}
	for _, v := range known.Details.Violations {
		if v.Rule == "" || v.Message == "" || v.Pointer != "" && v.Pointer[0] != '/' || v.Message == "does not decode" {
			t.Errorf("violation %+v", v)
		}
	}
}

// Whatever a host sends, the session ends in order, every answer is a response,
// and what is refused has not touched the store.
func FuzzServe(f *testing.F) {
	_, sessions := seeds(f)
	for _, session := range sessions {
		f.Add([]byte(session))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		s := newMemory(t)
		var out bytes.Buffer
		err := rpc.Serve(t.Context(), s, bytes.NewReader(input), &out, rpc.Options{MaxFrame: 4096, MaxInFlight: 8})
		if err != nil && !errors.Is(err, rpc.ErrExit) {
			t.Fatalf("the session ends with %v", err)
		}
		refusedOnly := true
		frames, _ := rpc.Frames(&out, 1<<30)
		for _, frame := range frames {
			if !checkResponses(t, frame) {
				refusedOnly = false
			}
		}
		if refusedOnly && s.submitted+s.reads > 0 {
			t.Errorf("%d writes and %d reads for input that was refused", s.submitted, s.reads)
		}
	})
}

// checkResponses checks a frame of the output and reports whether all of it refuses input.
func checkResponses(t *testing.T, frame string) bool {
	t.Helper()
	type response struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Result  json.RawMessage `json:"result"`
		Error   *struct {
			Code    int              `json:"code"`
			Message string           `json:"message"`
			Data    schema.ErrorData `json:"data"`
		} `json:"error"`
	}
	responses := make([]response, 1)
	var into any = &responses[0]
	if strings.HasPrefix(frame, "[") {
		into = &responses
	}
	if err := json.Unmarshal([]byte(frame), into); err != nil || !utf8.ValidString(frame) {
		t.Fatalf("%s: %v", frame, err)
	}
	refused := true
	for _, r := range responses {
		if r.Version != "2.0" || r.Method == "" && r.ID == nil || (r.Result == nil) == (r.Error == nil) {
			t.Errorf("%s is no response", frame)
		}
		switch {
		case r.Error == nil:
			refused = false
		case r.Error.Code != -32700 && r.Error.Code != -32600 && r.Error.Code != -32601 && r.Error.Code != -32602:
			refused = false
		}
	}
	return refused
}
