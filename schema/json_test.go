package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// stringify is the SHA-256 of every code point in blocks of 256, each block
// encoded by ECMAScript and followed by a newline:
//
//	for (let b = 0; b <= 0x10ffff; b += 256) {
//	  if (b >= 0xd800 && b <= 0xdfff) continue
//	  let s = ''
//	  for (let i = 0; i < 256; i++) s += String.fromCodePoint(b + i)
//	  hash.update(JSON.stringify(s) + '\n')
//	}
const stringify = "339970ed5130f72b4a9bc8b6d6e0caf72db20c2fb0565bf2f81aaae10ebda71a"

// TestEncodeEscapesAsStringifyDoes: every code point.
func TestEncodeEscapesAsStringifyDoes(t *testing.T) {
	t.Parallel()
	hash := sha256.New()
	for block := rune(0); block <= 0x10ffff; block += 256 {
		if block >= 0xd800 && block <= 0xdfff {
			continue
		}
		var text []rune
		for i := range rune(256) {
			text = append(text, block+i)
		}
		encoded, err := Encode(string(text))
		if err != nil {
			t.Fatal(err)
		}
		hash.Write(append(encoded, '\n'))
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != stringify {
		t.Errorf("got %s, want %s", got, stringify)
	}
}

// TestEncode: what JSON.stringify prints for the same values.
func TestEncode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value any
		want  string
	}{
		{"\x00\b\t\n\v\f\r\x1f\x7f\"'\\/<>&\u2028\u2029\u0085\ufeff\U0001f600",
			`"\u0000\b\t\n\u000b\f\r\u001f` + "\x7f" + `\"'\\/<>&` + "\u2028\u2029\u0085\ufeff\U0001f600" + `"`},
		{int64(MaxInteger), "9007199254740991"},
		{int64(-MaxInteger), "-9007199254740991"},
		{[]string{}, "[]"},
		{[]string(nil), "[]"},
		{map[string]int64{"b": 1, "a": 2}, `{"a":2,"b":1}`},
		{DefaultLimits(), `{"max_active":6,"max_writers":2,"max_created":3,"max_retries":2}`},
		{Proof{Kind: NeverStarted}, `{"kind":"never_started"}`},
		{Proof{Kind: Terminal, Outcome: Failed, Quiescent: true, Evidence: "<\u2028&>"}, `{"kind":"terminal","outcome":"failed","quiescent":true,"evidence":"<` + "\u2028" + `&>"}`},
		{ErrorData{Code: ErrStoreBusy, Retryable: true}, `{"code":"E_STORE_BUSY","retryable":true}`},
		{FenceDetail{Fence: FenceRework, Current: 1}, `{"fence":"rework","expected":null,"current":1}`},
	}
	for _, test := range tests {
		got, err := Encode(test.value)
		if err != nil || string(got) != test.want {
			t.Errorf("got %s, %v, want %s", got, err, test.want)
		}
		appended, err := AppendTo([]byte("x"), test.value)
		if err != nil || string(appended) != "x"+test.want {
			t.Errorf("appended %s, %v, want x%s", appended, err, test.want)
		}
	}
}

func TestEncodeRefusesWhatJSONCannotHold(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"\xff", "a\xed\xa0\x80", "\xc0\x80"} {
		if got, err := Encode(text); err == nil {
			t.Errorf("%q became %s", text, got)
		}
	}
}

// integers are spellings of numbers, with the integer that each denotes on the wire.
var integers = []struct {
	text string
	want int64
	ok   bool
}{
	{"0", 0, true}, {"-0", 0, true}, {"0.0", 0, true}, {"-0.0e5", 0, true}, {"0e400", 0, true},
	{"1", 1, true}, {"1.0", 1, true}, {"1e0", 1, true}, {"1E+0", 1, true}, {"10e-1", 1, true}, {"0.1e1", 1, true},
	{"100", 100, true}, {"1e2", 100, true}, {"1.00e2", 100, true}, {"1.5e1", 15, true}, {"-12e1", -120, true},
	{"9007199254740991", MaxInteger, true}, {"9007199254740991.0", MaxInteger, true}, {"9.007199254740991e15", MaxInteger, true},
	{"-9007199254740991", -MaxInteger, true},
	{"9007199254740992", 0, false}, {"-9007199254740992", 0, false}, {"9.007199254740992e15", 0, false}, {"1e16", 0, false},
	{"18446744073709551617", 0, false}, {"1e400", 0, false}, {"-1e400", 0, false},
	{"1.5", 0, false}, {"1e-1", 0, false}, {"0.1", 0, false}, {"-0.5", 0, false}, {"1e-400", 0, false}, {"9007199254740990.5", 0, false},
}

func TestDecodeIntegers(t *testing.T) {
	t.Parallel()
	for _, test := range integers {
		var into struct {
			N int64 `json:"n"`
			P *int64
		}
		err := Decode([]byte(`{"n":`+test.text+`,"P":`+test.text+`}`), &into)
		if (err == nil) != test.ok {
			t.Errorf("%s: got %v", test.text, err)
			continue
		}
		if test.ok && (into.N != test.want || *into.P != test.want) {
			t.Errorf("%s: got %d and %d, want %d", test.text, into.N, *into.P, test.want)
		}
	}
}

// TestDecodeIsStrict: two spellings never become one key.
func TestDecodeIsStrict(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"task_id":1,"task_id":1}`, `{"Task_ID":1}`, `{"task_id":1,"more":1}`, `{"task_id":"1"}`, `{"task_id":true}`,
		"{\"task_id\":1,\"\xff\":1}", `{"task_id":1} {}`, `{"task_id":1`, `[1]`, `{"task_id":01}`,
	} {
		var into TaskInput
		if err := Decode([]byte(text), &into); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
	for _, text := range []string{`{"title":"\ud800"}`, `{"title":"\udc00\ud800"}`, "{\"title\":\"\xed\xa0\x80\"}"} {
		var into OpenInput
		if err := Decode([]byte(text), &into); err == nil {
			t.Errorf("%s became %q", text, into.Title)
		}
	}
}
