package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"pgregory.net/rapid"
)

// property runs a property test of rapid's, and returns what it would print.
func property(f func(*rapid.T) error) error {
	r := &report{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		rapid.Check(r, func(t *rapid.T) {
			if err := f(t); err != nil {
				t.Fatal(err)
			}
		})
	}()
	<-done
	if !r.failed {
		return nil
	}
	return errors.New(strings.Join(r.lines, "\n"))
}

// report is the rapid.TB of a check: it keeps what a test would print.
type report struct {
	lines  []string
	failed bool
}

func (r *report) Helper()      {}
func (r *report) Name() string { return "storetest" }
func (r *report) Failed() bool { return r.failed }
func (r *report) Fail()        { r.failed = true }
func (r *report) FailNow()     { r.failed = true; runtime.Goexit() }
func (r *report) SkipNow()     { runtime.Goexit() }

func (r *report) Log(args ...any)              { r.lines = append(r.lines, fmt.Sprint(args...)) }
func (r *report) Logf(f string, args ...any)   { r.Log(fmt.Sprintf(f, args...)) }
func (r *report) Skip(args ...any)             { r.Log(args...); r.SkipNow() }
func (r *report) Skipf(f string, args ...any)  { r.Logf(f, args...); r.SkipNow() }
func (r *report) Error(args ...any)            { r.Log(args...); r.Fail() }
func (r *report) Errorf(f string, args ...any) { r.Logf(f, args...); r.Fail() }
func (r *report) Fatal(args ...any)            { r.Log(args...); r.FailNow() }
func (r *report) Fatalf(f string, args ...any) { r.Logf(f, args...); r.FailNow() }
