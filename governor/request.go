package governor

import (
	"slices"
	"unicode/utf16"

	"github.com/dsh-taskforce/sidecar/schema"
)

// request is a reserve input in its normalized form. Its encoding is the
// stored payload: two requests are the same if their payloads are equal text.
type request struct {
	TaskID     int64       `json:"task_id"`
	Generation int64       `json:"generation"`
	Mode       schema.Mode `json:"mode"`
	Kind       schema.Kind `json:"kind"`
	Resources  []string    `json:"resources"`
}

// normalize drops what does not matter: the order and the duplicates of resources.
func normalize(in *schema.ReserveInput) request {
	resources := slices.Clone(in.Resources)
	slices.SortFunc(resources, compareUTF16)
	return request{in.TaskID, in.Generation, in.Mode, in.Kind, slices.Compact(resources)}
}

// compareUTF16 orders strings as ECMAScript's sort does, by UTF-16 code units,
// which differs from the order of bytes where surrogate pairs occur.
func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

func (r request) payload() (string, error) {
	text, err := schema.Encode(r)
	return string(text), err
}
