package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// readme returns the README with its tables written again: methods and errors
// from the document, hostile input from the transcripts that show it.
func readme(root string, doc *document) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return nil, err
	}
	hostile, err := hostileTables(root)
	if err != nil {
		return nil, err
	}
	for name, table := range map[string]string{"methods": methodTable(doc), "errors": errorTable(doc), "hostile": hostile} {
		begin := []byte("<!-- " + name + ": written by clients/gen -->\n")
		end := []byte("<!-- /" + name + " -->")
		before, rest, found := bytes.Cut(text, begin)
		_, after, closed := bytes.Cut(rest, end)
		if !found || !closed {
			return nil, fmt.Errorf("README.md has no place for the %s", name)
		}
		text = bytes.Join([][]byte{before, begin, []byte(table), end, after}, nil)
	}
	return text, nil
}

func methodTable(doc *document) string {
	var b strings.Builder
	b.WriteString("| method | parameters | what it does |\n| --- | --- | --- |\n")
	for _, m := range doc.Methods {
		var names []string
		for _, p := range m.Params {
			name := "`" + p.Name + "`"
			if !p.Required {
				name += "?"
			}
			names = append(names, name)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.Name, strings.Join(names, ", "), m.Description)
	}
	return b.String()
}

func errorTable(doc *document) string {
	codes := make([]string, 0, len(doc.Components.Errors))
	for code := range doc.Components.Errors {
		codes = append(codes, code)
	}
	sort.Slice(codes, func(i, j int) bool {
		return doc.Components.Errors[codes[i]].Code > doc.Components.Errors[codes[j]].Code
	})
	var b strings.Builder
	b.WriteString("| code | number | when |\n| --- | --- | --- |\n")
	for _, code := range codes {
		e := doc.Components.Errors[code]
		retryable := ""
		if e.Data.Retryable {
			retryable = " Retryable."
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s%s |\n", code, e.Code, e.Message, retryable)
	}
	return b.String()
}

// transcripts is where each row of the hostile tables is a session that a test replays.
const transcripts = "rpc/testdata"

// hostileTables are the tables beside the transcripts, as a part of the README.
func hostileTables(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(transcripts), "README.md"))
	if err != nil {
		return "", err
	}
	_, tables, _ := strings.Cut(string(text), "\n## ")
	tables, _, _ = strings.Cut(tables, "\n## The format\n")
	tables = "#### " + strings.ReplaceAll(tables, "\n## ", "\n#### ")
	return strings.ReplaceAll(tables, "](transcripts/", "]("+transcripts+"/transcripts/"), nil
}
