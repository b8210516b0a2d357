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

// recognise skips a byte order mark and blank lines, and looks for a header. It
// never waits for more bytes than it needs, because the host may send no more
// before it has an answer.
func (f *framer) recognise() error {
	first, err := f.in.Peek(1)
	if err == nil && first[0] == '\xef' {
		if mark, _ := f.in.Peek(3); string(mark) == "\xef\xbb\xbf" {
			_, _ = f.in.Discard(3)
		}
	}
	for {
		if first, err = f.in.Peek(1); err != nil {
			return err
		}
		if !isSpace(first[0]) {
			f.headers = f.startsWithHeader()
			return nil
		}
		_, _ = f.in.Discard(1)
	}
}

// startsWithHeader reports whether the input goes on with header fields of
// which one is a Content-Length. JSON shows at its first byte that it does not.
func (f *framer) startsWithHeader() bool {
	const longest = 4 << 10
	name, named := 0, false // where the current line begins, and whether its colon was seen
	for n := 1; n <= longest; n++ {
		head, err := f.in.Peek(n)
		if err != nil {
			return false
		}
		switch c := head[n-1]; {
		case c == '\n' && !named:
			return false
		case c == '\n':
			name, named = n, false
		case named:
		case c == ':':
			named = n-1 > name
			if !named || strings.EqualFold(string(head[name:n-1]), contentLength) {
				return named
			}
		case !isNameByte(c):
			return false
		}
	}
	return false
}

const contentLength = "Content-Length"

// isNameByte reports whether a header's name may contain the byte.
func isNameByte(c byte) bool {
	return c == '-' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// trim cuts the white space of JSON off, and no other: what Unicode takes for a
// space is an error in JSON.
func trim(text []byte) []byte { return bytes.Trim(text, " \t\r\n") }

// line returns the next line that is not blank.
func (f *framer) line() ([]byte, error) {
	for {
		line, err := f.readLine()
		if line = trim(line); len(line) > 0 || err != nil {
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
			// The limit is on the JSON text, so the line end does not count.
			if tooLong = len(bytes.TrimRight(line, "\r\n")) > f.limit; tooLong {
				line = nil
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case tooLong && (err == nil || err == io.EOF):
			return nil, errTooLong
		case err == io.EOF && len(trim(line)) > 0:
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
			return nil, cut(err)
		}
		return nil, errTooLong
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(f.in, body); err != nil {
		return nil, cut(err)
	}
	return body, nil
}

// cut tells the end of input in the middle of a frame from other errors.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// header reads one header block and returns its Content-Length.
func (f *framer) header() (int64, error) {
	length, begun, valid := int64(-1), false, true
	for {
		raw, err := f.readLine()
		line := trim(raw)
		switch {
		case err != nil && !errors.Is(err, errTooLong) && begun:
			return 0, cut(err)
		case err != nil && !errors.Is(err, errTooLong):
			return 0, err
		case len(line) == 0 && err == nil && !begun:
			continue // blank lines between blocks
		case len(line) == 0 && err == nil && length >= 0 && valid:
			return length, nil
		case len(line) == 0 && err == nil:
			return 0, errBadHeader
		}
		begun = true
		if value, ok := lengthField(line); ok {
			n, err := strconv.ParseUint(value, 10, 63)
			valid = valid && err == nil && (length < 0 || length == int64(n))
			length = int64(n)
		}
	}
}

// lengthField returns the value of a Content-Length field. It may stand behind
// what is left of a block whose own length was wrong, so that one bad header
// costs one request and not the connection.
func lengthField(line []byte) (value string, ok bool) {
	colon := bytes.LastIndexByte(line, ':')
	name := trim(line[:max(colon, 0)])
	before := len(name) - len(contentLength)
	if before < 0 || !strings.EqualFold(string(name[before:]), contentLength) || before > 0 && isNameByte(name[before-1]) {
		return "", false
	}
	return string(trim(line[colon+1:])), true
}
