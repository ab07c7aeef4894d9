package api

import (
	"encoding/json"
	"testing"
	"time"
)

// FuzzSeconds reads durations: one that is read is written as one that reads the same, to the millisecond, rounded up.
func FuzzSeconds(f *testing.F) {
	for _, text := range []string{"15", "0.5", "-1", "1e300", "NaN", `"1m30s"`, "1m30s", `"x"`, "null", "", "9223372036.854775807", `"-2562047h47m16.854775808s"`, "0x1p3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSeconds(text)
		if err == nil {
			rewritten(t, s)
		}
		if json.Unmarshal([]byte(text), &s) == nil {
			rewritten(t, s)
		}
	})
}

func rewritten(t *testing.T, s Seconds) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("%d: %v", s, err)
	}
	var back Seconds
	if err := json.Unmarshal(text, &back); err != nil {
		if d := time.Duration(s).Abs(); d < 1<<63-1-time.Second && d >= 0 {
			t.Errorf("%d is written %s: %v", s, text, err)
		}
		return
	}
	if d := time.Duration(s).Abs(); d < 1<<50 && (back < s || back-s > Seconds(time.Millisecond)) {
		t.Errorf("%d is written %s, and read as %d", s, text, back)
	}
}

// FuzzProblem reads what a server, or something between, may answer: it becomes an error that can be told, and a problem again.
func FuzzProblem(f *testing.F) {
	for code := range kinds {
		text, err := json.Marshal(NewProblem(code, "why"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"code": "held", "since": "2026-01-01T00:00:00Z", "expires_in": 1e9, "token": 9007199254740991}`))
	f.Add([]byte(`{"code": "version_conflict", "record": {"token": 1}, "version": "v"}`))
	f.Add([]byte(`{"code": "version_conflict", "record": "x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p Problem
		if json.Unmarshal(text, &p) != nil {
			return
		}
		err := p.Err()
		if err == nil {
			t.Fatalf("%s: no error", text)
		}
		_ = err.Error()
		if again := ProblemOf(err); again.Code == "" && p.Code != "" {
			t.Errorf("%s: no code any more: %+v", text, again)
		}
	})
}

// FuzzRecordLine reads a line of a list of records.
func FuzzRecordLine(f *testing.F) {
	f.Add([]byte(`{"key": "a", "version": "1", "age": -5, "record": {"owner": "x", "token": 1, "ttl": 5}}`))
	f.Add([]byte(`{"record": null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var l RecordLine
		if json.Unmarshal(text, &l) != nil {
			return
		}
		if rec, err := l.Rec(); err == nil && (rec.Key != l.Key || rec.Age < 0) {
			t.Errorf("%s: %+v", text, rec)
		}
	})
}
