package servers

import (
	"fmt"
	"runtime"
	"testing"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	skipped, failed bool
	text            string
	logged          string
}

func (r *recorder) Helper()      {}
func (r *recorder) Failed() bool { return r.failed }

func (r *recorder) Logf(format string, args ...any) { r.logged += fmt.Sprintf(format, args...) }

func (r *recorder) Fatal(args ...any) {
	r.failed, r.text = true, fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped, r.text = true, fmt.Sprintf(format, args...)
	runtime.Goexit()
}
