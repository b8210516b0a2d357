package minimal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

var (
	name      = regexp.MustCompile(`^\$r\d+$`)
	named     = regexp.MustCompile(`"\$r\d+"`)
	uuid      = regexp.MustCompile(`"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"`)
	timestamp = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)
)

// names binds `$r1`, `$r2`, … to what was drawn, in order of appearance.
type names map[string]string

// fill replaces names by what they are bound to.
func (n names) fill(text []byte) []byte {
	return named.ReplaceAllFunc(text, func(quoted []byte) []byte {
		if value, bound := n[string(bytes.Trim(quoted, `"`))]; bound {
			return strconv.AppendQuote(nil, value)
		}
		return quoted
	})
}

// hide replaces what is another each time, as an expectation has it.
func (n *names) hide(text []byte) []byte {
	text = timestamp.ReplaceAll(text, []byte(`"$$time"`))
	return uuid.ReplaceAllFunc(text, func(quoted []byte) []byte {
		value := string(bytes.Trim(quoted, `"`))
		for name, bound := range *n {
			if bound == value {
				return strconv.AppendQuote(nil, name)
			}
		}
		return strconv.AppendQuote(nil, n.bind(fmt.Sprintf("$r%d", len(*n)+1), value))
	})
}

func (n *names) bind(name, value string) string {
	if *n == nil {
		*n = names{}
	}
	(*n)[name] = value
	return name
}

// match compares an answer with what is expected of it, and binds the names that appear first in it.
func (n *names) match(want, got []byte) error {
	if want == nil {
		return fmt.Errorf("was not expected: %s", got)
	}
	expected, err := decode(want)
	if err != nil {
		return err
	}
	answer, err := decode(got)
	if err != nil {
		return err
	}
	return n.compare("", expected, answer)
}

func decode(text []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return value, decoder.Decode(&value)
}

func (n *names) compare(path string, want, got any) error {
	switch want := want.(type) {
	case string:
		return n.compareText(path, want, got)
	case map[string]any:
		return n.compareObjects(path, want, got)
	case []any:
		items, ok := got.([]any)
		if !ok || len(items) != len(want) {
			return fmt.Errorf("%s: want %d items, got %v", path, len(want), got)
		}
		for i := range want {
			if err := n.compare(fmt.Sprintf("%s/%d", path, i), want[i], items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if want != got {
		return fmt.Errorf("%s: want %v, got %v", path, want, got)
	}
	return nil
}

func (n *names) compareText(path, want string, got any) error {
	if want == "$any" {
		return nil
	}
	text, ok := got.(string)
	switch bound, known := (*n)[want]; {
	case !ok:
	case name.MatchString(want) && !known:
		n.bind(want, text)
		return nil
	case known && bound == text, !known && want == text:
		return nil
	case want == "$time" && timestamp.MatchString(strconv.Quote(text)):
		return nil
	}
	return fmt.Errorf("%s: want %q, got %v", path, want, got)
}

// compareObjects wants the same members in both, or more if `$more` is expected.
func (n *names) compareObjects(path string, want map[string]any, got any) error {
	members, ok := got.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: want an object, got %v", path, got)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if key == "$more" {
			continue
		}
		if _, ok := members[key]; !ok {
			return fmt.Errorf("%s/%s: is missing", path, key)
		}
		if err := n.compare(path+"/"+key, want[key], members[key]); err != nil {
			return err
		}
	}
	if _, more := want["$more"]; more {
		return nil
	}
	for key := range members {
		if _, ok := want[key]; !ok {
			return fmt.Errorf("%s/%s: is not expected: %v", path, key, members[key])
		}
	}
	return nil
}
