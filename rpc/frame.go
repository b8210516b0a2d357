package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// errTooLong reports a frame over the limit. It has been skipped; reading goes on.
var errTooLong = errors.New("the frame is longer than the limit")

// errBadHeader reports a header block without a usable Content-Length. Reading goes on.
var errBadHeader = errors.New("the header has no valid Content-Length")

// errCut reports a frame that the end of input cut short.
var errCut = errors.New("the end of input cut the frame short")

// framer cuts the input into frames: lines, or blocks with a Content-Length
// header as in the Language Server Protocol. Which of them it is shows in the
// first bytes and holds for the whole connection.
type framer struct {
	in    *bufio.Reader
	limit int
	begun bool
	// headers says that frames have Content-Length headers.
	headers bool
}

func newFramer(in io.Reader, limit int) *framer {
	return &framer{in: bufio.NewReaderSize(in, 64<<10), limit: limit}
}

// next returns the JSON text of the next frame, in memory of its own. Besides
// the errors of the input it returns errTooLong, errBadHeader and errCut.
func (f *framer) next() ([]byte, error) {
	if !f.begun {
		if err := f.recognise(); err != nil {
			return nil, err
		}
		f.begun = true
	}
	if f.headers {
		return f.block()
	}
	return f.line()
}

// recognise skips a byte order mark and blank lines, and looks for a header.
func (f *framer) recognise() error {
	if mark, _ := f.in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = f.in.Discard(3)
	}
	for {
		first, err := f.in.Peek(1)
		if err != nil {
			return err
		}
		if !isSpace(first[0]) {
			break
		}
		_, _ = f.in.Discard(1)
	}
	const longest = 64 // no header name is longer
	for n := 1; n <= longest; n++ {
		head, err := f.in.Peek(n)
		if err != nil {
			return nil // a short input without a colon is a line
		}
		c := head[n-1]
		if c == ':' {
			f.headers = n > 1
			return nil
		}
		if c != '-' && (c|0x20 < 'a' || c|0x20 > 'z') {
			return nil
		}
	}
	return nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// line returns the next line that is not blank.
func (f *framer) line() ([]byte, error) {
	for {
		line, err := f.readLine()
		if line = bytes.Trim(line, " \t\r\n"); len(line) > 0 || err != nil {
			return line, err
		}
	}
}

// readLine reads up to a newline. A line over the limit is skipped without
// being held. The last line may lack its newline.
func (f *framer) readLine() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := f.in.ReadSlice('\n')
		if !tooLong {
			line = append(line, part...)
			// The limit is on the JSON text, so two bytes of line end do not count.
			if tooLong = len(bytes.TrimRight(line, "\r\n")) > f.limit; tooLong {
				line = nil
			}
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case tooLong && (err == nil || err == io.EOF):
			return nil, errTooLong
		case err == io.EOF && len(bytes.Trim(line, " \t\r\n")) > 0:
			return line, nil
		}
		return line, err
	}
}

// block returns the body of the next block with headers.
func (f *framer) block() ([]byte, error) {
	length, err := f.header()
	if err != nil {
		return nil, err
	}
	if length > int64(f.limit) {
		if _, err := io.CopyN(io.Discard, f.in, length); err != nil {
			return nil, errCut
		}
		return nil, errTooLong
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(f.in, body); err != nil {
		return nil, errCut
	}
	return body, nil
}

// header reads one header block and returns its Content-Length.
func (f *framer) header() (int64, error) {
	length, any := int64(-1), false
	for {
		raw, err := f.readLine()
		if err != nil && err != errTooLong {
			return 0, err
		}
		line := strings.TrimSpace(string(raw))
		if line == "" && err == nil {
			if !any {
				continue // blank lines between blocks
			}
			break
		}
		any = true
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			if length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil {
				length = -1
			}
		}
	}
	if length < 0 {
		return 0, errBadHeader
	}
	return length, nil
}
