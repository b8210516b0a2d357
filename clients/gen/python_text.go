package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// pythonClass turns a name such as governor.markUnknown into GovernorMarkUnknown.
func pythonClass(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, ".") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// pythonName turns a name such as markUnknown into mark_unknown.
func pythonName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func pythonLiteral(value any) string {
	switch v := value.(type) {
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(value)
}

// pythonText escapes what a docstring cannot hold as it stands.
func pythonText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"""`, `\"\"\"`).Replace(text)
}

func pythonQuoted(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strconv.Quote(name)
	}
	return out
}

// pythonWrap breaks text into lines of at most width bytes. Lines after the
// first get the indent.
func pythonWrap(text string, width int, indent string) []string {
	var lines []string
	current := ""
	for word := range strings.FieldsSeq(text) {
		if current != "" && len(current)+1+len(word) > width {
			lines = append(lines, current)
			current = indent + word
			continue
		}
		if current != "" {
			current += " "
		}
		current += word
	}
	return append(lines, current)
}
