package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
)

// checked is a flag whose value is refused where it is read, so that a command
// that begins has only values that can serve. An empty value is refused too: it
// is what a script passes when its variable is not set, and must not read as if
// the flag were absent.
type checked[T any] struct {
	value *T
	kind  string
	parse func(string) (T, error)
}

// Set implements pflag.Value.
func (f checked[T]) Set(text string) error {
	if text == "" {
		return errors.New("it must not be empty")
	}
	value, err := f.parse(text)
	if err == nil {
		*f.value = value
	}
	return err
}

// String implements pflag.Value.
func (f checked[T]) String() string { return fmt.Sprint(*f.value) }

// Type implements pflag.Value; it is the name that the help gives the value.
func (f checked[T]) Type() string { return f.kind }

func textFlag(value *string, kind string) checked[string] {
	return checked[string]{value, kind, func(text string) (string, error) { return text, nil }}
}

func roleFlag(value *schema.Role) checked[schema.Role] {
	return checked[schema.Role]{value, "role", func(text string) (schema.Role, error) {
		role := schema.Role(text)
		if role != schema.Lead && role != schema.Worker {
			return "", errors.New("it must be lead or worker")
		}
		return role, nil
	}}
}

func intFlag(value *int, kind string, low, high int) checked[int] {
	return checked[int]{value, kind, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("it must be a number from %d to %d", low, high)
		}
		return n, nil
	}}
}

func durationFlag(value *time.Duration, low, high time.Duration) checked[time.Duration] {
	return checked[time.Duration]{value, "duration", func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || d < low || d > high {
			return 0, fmt.Errorf("it must be a duration from %v to %v, such as 1.5s", low, high)
		}
		return d, nil
	}}
}
