package dynamodb

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store/driver"
)

// findings returns what Inspect found, by what it is about.
func findings(t *testing.T, s *Store) map[string]driver.Finding {
	t.Helper()
	byWhat := map[string]driver.Finding{}
	for _, f := range s.Inspect(t.Context()) {
		if _, twice := byWhat[f.What]; twice || f.Detail == "" || (f.Advice == "") != (f.Status == driver.StatusOK) {
			t.Errorf("%+v, twice: %v", f, twice)
		}
		byWhat[f.What] = f
	}
	return byWhat
}

func TestInspect(t *testing.T) {
	s := testStore(t, Options{Identity: func(context.Context) (string, error) { return "arn:aws:iam::1:user/ada", nil }})
	got := findings(t, s)
	for _, what := range []string{
		"identity", "table", "table status", "key schema", "consistency mode", "time to live", "capacity", "deletion protection",
		"permission to read", "permission to write", "permission to delete", "permission to list", "clock",
	} {
		if f := got[what]; f.Status != driver.StatusOK {
			t.Errorf("%s: %+v", what, f)
		}
		delete(got, what)
	}
	if len(got) != 0 {
		t.Errorf("not looked at here: %v", got)
	}
	for rec, err := range s.List(t.Context(), "") {
		t.Errorf("left behind: %v, %v", rec, err)
	}
}

// What can't be done is a finding that names the permission; the rest goes on.
func TestInspectWithoutPermissions(t *testing.T) {
	f, table := testFront(t)
	for op, want := range map[string]struct {
		what   string
		status driver.Status
	}{
		"GetItem":            {"permission to read", driver.StatusFail},
		"PutItem":            {"permission to write", driver.StatusFail},
		"DeleteItem":         {"permission to delete", driver.StatusFail},
		"Scan":               {"permission to list", driver.StatusWarn},
		"DescribeTable":      {"table", driver.StatusFail},
		"DescribeTimeToLive": {"time to live", driver.StatusFail},
	} {
		s := testOpen(t, testClient(t, f.URL), table, Options{})
		f.do(fault{op: op, unsent: true, answer: says(400, "AccessDeniedException")})
		got := findings(t, s)
		if f := got[want.what]; f.Status != want.status || !strings.Contains(f.Detail+f.Advice, "dynamodb:"+op) {
			t.Errorf("without %s: %+v", op, f)
		}
		if f := got["clock"]; f.Status != driver.StatusOK {
			t.Errorf("without %s: %+v", op, f)
		}
		f.do()
		for rec, err := range s.List(t.Context(), "") { // what could not be deleted
			if err := errors.Join(err, s.Delete(t.Context(), rec.Key, rec.Version)); err != nil || op != "DeleteItem" {
				t.Errorf("without %s: left behind: %v, %v", op, rec, err)
			}
		}
	}
}

// A clock that is off is a warning: signatures and new tokens depend on it.
func TestInspectClock(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{})
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		f.do(fault{op: "GetItem", unsent: true, answer: func(w http.ResponseWriter) {
			w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			_, _ = w.Write([]byte("{}"))
		}})
		if f := s.inspectClock(t.Context()); f.Status != driver.StatusWarn || !strings.Contains(f.Advice, "clock") {
			t.Errorf("%v off: %+v", off, f)
		}
	}
	f.do()
	if f := s.inspectClock(t.Context()); f.Status != driver.StatusOK {
		t.Errorf("%+v", f)
	}
}

// Who may not describe the table gets warnings, if the caller vouches for it.
func TestInspectUnchecked(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{Unchecked: true, Identity: func(context.Context) (string, error) {
		return "", errors.New("no way to STS")
	}})
	f.do(fault{op: "DescribeTable", unsent: true, answer: says(400, "AccessDeniedException")})
	got := findings(t, s)
	for _, what := range []string{"table", "identity"} {
		if f := got[what]; f.Status != driver.StatusWarn {
			t.Errorf("%s: %+v", what, f)
		}
	}
	var failed []string
	for what, f := range got {
		if f.Status == driver.StatusFail {
			failed = append(failed, what)
		}
	}
	if slices.Sort(failed); len(failed) != 0 {
		t.Errorf("failed: %v", failed)
	}
}
