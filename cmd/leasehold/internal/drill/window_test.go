package drill

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Skipf("not tried here: %v", err)
	}
	for _, c := range []struct {
		window, now string // of the wall in Paris, with its offset
		left        time.Duration
	}{
		{"02:00-04:00", "2026-11-25T01:59:59+01:00", 0},
		{"02:00-04:00", "2026-11-25T02:00:00+01:00", 2 * time.Hour},
		{"02:00-04:00", "2026-11-25T03:59:59+01:00", time.Second},
		{"02:00-04:00", "2026-11-25T04:00:00+01:00", 0},
		{"02:00-04:00", "2026-11-25T02:30:00Z", 30 * time.Minute}, // another zone's clock
		{"22:00-02:00", "2026-11-25T23:00:00+01:00", 3 * time.Hour},
		{"22:00-02:00", "2026-11-26T01:00:00+01:00", time.Hour},
		{"22:00-02:00", "2026-11-26T12:00:00+01:00", 0},
		{"22:00-02:00", "2026-12-31T23:30:00+01:00", 150 * time.Minute},
		{"01:00-04:00", "2026-03-29T01:30:00+01:00", 90 * time.Minute},  // clocks go forward at 2
		{"01:00-04:00", "2026-10-25T01:30:00+02:00", 210 * time.Minute}, // and back at 3
	} {
		w, err := ParseWindow(c.window, paris)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if left := w.Left(now); left != c.left {
			t.Errorf("%s at %s: %v, want %v", c.window, c.now, left, c.left)
		}
	}
	for _, bad := range []string{"", "02:00", "2-4", "02:00-25:00", "02:00-02:00", "-"} {
		if _, err := ParseWindow(bad, paris); err == nil || !strings.Contains(err.Error(), "window") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestShell: a command knows what it is about, what it prints is in the error, and one that takes too
// long is ended.
func TestShell(t *testing.T) {
	dir := t.TempDir()
	var said string
	f := ShellFault("echo $"+EnvStep+" $"+EnvPod+" $"+EnvRegion+"; echo broken >&2; exit 3", "touch "+filepath.Join(dir, "undone"), func(text string) { said = text })
	err := f.Do(t.Context(), Kill, Side{"east", "us-east-2"})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "broken") || !strings.HasPrefix(said, "kill east us-east-2\n") {
		t.Errorf("%v, said %q", err, said)
	}
	if err := f.Undo(t.Context(), Kill, Side{Pod: "east"}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "undone")); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := ShellFault("sleep 1000 & wait", "", nil).Do(ctx, Kill, Side{}); err == nil || !strings.Contains(err.Error(), "not ended in time") {
		t.Errorf("%v", err)
	}
	if probe, err := ParseProbe("test $"+EnvPod+" = east", Side{Pod: "east"}); err != nil {
		t.Error(err)
	} else if _, err := probe(t.Context()); err != nil {
		t.Error(err)
	}
}
