package minimal

import (
	"bytes"
	"os"
	"testing"
)

// The page that shows this client shows it as it is.
func TestTheDocumentationShowsThisClient(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("client.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/any-language.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, append([]byte("```go\n"), append(code, "```\n"...)...)) {
		t.Error("docs/any-language.md shows another client than client.go")
	}
}
