package schema

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// BenchmarkBind is what a call costs before its rule runs.
func BenchmarkBind(b *testing.B) {
	const input = `{"operation_key":"op-1","task_id":1,"generation":0,"mode":"write","kind":"new","resources":["repo:a","file:b"]}`
	const authority = `{"role":"lead","sessionId":"session-1"}`
	for name, params := range map[string]string{
		"by name":     `{"input":` + input + `,"runId":"run-1","authority":` + authority + `}`,
		"by position": `[` + input + `,"run-1",` + authority + `]`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var into ReserveParams
				if err := Reserve.Bind(jsontext.Value(params), &into); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
