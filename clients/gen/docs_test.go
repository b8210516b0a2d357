package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// The page on refusals says what to do about every code and every reason.
func TestEveryRefusalIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/refusals.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range schema.Codes {
		if !strings.Contains(string(text), "`"+string(spec.Code)+"`") {
			t.Errorf("docs/refusals.md does not explain %s", spec.Code)
		}
	}
	reasons, err := os.ReadFile("../../schema/errors.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`Reason = "(\w+)"`).FindAllStringSubmatch(string(reasons), -1) {
		if !strings.Contains(string(text), "`"+match[1]+"`") {
			t.Errorf("docs/refusals.md does not explain the reason %s", match[1])
		}
	}
}

// Links between the pages lead somewhere.
func TestLinksOfTheDocumentation(t *testing.T) {
	pages, err := os.ReadDir("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, page := range pages {
		text, err := os.ReadFile("../../docs/" + page.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat("../../docs/" + match[1]); err != nil {
				t.Errorf("%s links to %s: %v", page.Name(), match[1], err)
			}
		}
	}
}
