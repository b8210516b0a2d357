package rpc

import (
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// What the fuzz targets take apart.

// Guard checks a frame as a session does.
func Guard(frame []byte) error {
	_, err := parse(frame, DefaultMaxInFlight)
	return err
}

// SameID reports whether two ids are the same by value.
func SameID(a, b jsontext.Value) bool { return idKey(a) == idKey(b) }

// Frames cuts the input into frames. It returns them and the faults in order,
// and whether they had headers.
func Frames(in io.Reader, limit int) (frames []string, headers bool) {
	f := newFramer(in, limit)
	for {
		frame, err := f.next()
		switch {
		case err == nil:
			frames = append(frames, string(frame))
		case errors.Is(err, errTooLong), errors.Is(err, errBadHeader), errors.Is(err, errCut):
			frames = append(frames, err.Error())
		default:
			return frames, f.headers
		}
	}
}

// TooLong is what Frames returns for a frame over the limit.
var TooLong = errTooLong.Error()
