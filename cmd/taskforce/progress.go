package main

import (
	"fmt"
	"io"
	"os"
)

// progressBar draws how far a copy is, on a terminal only.
type progressBar struct {
	out    io.Writer
	shown  bool
	blocks blocks
	last   int
}

// draw redraws the bar if its percentage has changed.
func (p *progressBar) draw(done, total int) {
	if !p.shown || total == 0 {
		return
	}
	percent := done * 100 / total
	if percent == p.last {
		return
	}
	p.last = percent
	what := "copied"
	if done == total {
		what = "copied; verifying"
	}
	_, _ = fmt.Fprintf(p.out, "\r%s %3d%% %s", p.blocks.bar(int64(done), int64(total)), percent, what)
}

// clear takes the bar away.
func (p *progressBar) clear() {
	if p.last > 0 {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// onTerminal says that somebody looks at what is written.
func onTerminal(out *os.File) bool {
	info, err := out.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
