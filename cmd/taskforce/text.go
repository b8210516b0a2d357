package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// readable is a key as a person can read it: quoted where spaces at its ends or
// characters that do not print would mislead, or play tricks on a terminal.
func readable(key string) string {
	plain := key != "" && key == strings.TrimSpace(key) && key[0] != '"' &&
		strings.IndexFunc(key, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0
	if plain {
		return key
	}
	return strconv.Quote(key)
}

// optional is a key that may be absent.
func optional(key *string) string {
	if key == nil {
		return "-"
	}
	return readable(*key)
}

// age is how long ago a time of the store was, with two units at most.
func age(since *string, now time.Time) string {
	if since == nil {
		return "-"
	}
	then, err := time.Parse(time.RFC3339, *since)
	if err != nil {
		return "?"
	}
	d := max(now.Sub(then), 0)
	days, hours, minutes, seconds := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm%ds", minutes, seconds)
	}
	return fmt.Sprintf("%ds", seconds)
}

// blocks are the characters that bars are drawn with.
type blocks struct{ full, empty string }

var (
	plainBlocks = blocks{"#", "."}
	drawnBlocks = blocks{"█", "░"}
)

// blocksFor chooses drawn blocks for a terminal that shows UTF-8, plain ones
// for everything else and for whoever sets NO_COLOR.
func blocksFor(out *os.File) blocks {
	if !onTerminal(out) || os.Getenv("NO_COLOR") != "" || !speaksUTF8() {
		return plainBlocks
	}
	return drawnBlocks
}

// speaksUTF8 reports whether the locale is a UTF-8 one. Go writes UTF-16 to a
// Windows console, so there it always is.
func speaksUTF8() bool {
	if runtime.GOOS == "windows" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(os.Getenv(name)); locale != "" {
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return false
}

// barWidth is the length of a bar in characters.
const barWidth = 8

// bar draws how much of a limit is used. It is full only if nothing is left,
// and empty only if nothing is used.
func (b blocks) bar(used, limit int64) string {
	full := barWidth
	if used < limit {
		full = int((used*barWidth + limit - 1) / limit)
		full = min(full, barWidth-1)
	}
	return strings.Repeat(b.full, full) + strings.Repeat(b.empty, barWidth-full)
}
