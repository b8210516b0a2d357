package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// table aligns the columns of its rows. Flush writes it, and returns the first
// error of all writing.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer) table { return table{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)} }

// row adds a row of cells, with tabs between them.
func (t table) row(format string, args ...any) { _, _ = fmt.Fprintf(t, format+"\n", args...) }
