package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
)

func TestPlainLog(t *testing.T) {
	var b bytes.Buffer
	a := &App{Values: config.Values{{Setting: config.Setting{Name: "log-level"}, Text: "debug"}}}
	log := a.LogTo(&b).With("name", "job")
	log.Debug("tried", "times", 3, "why", errors.New("it is full"), "empty", "")
	log.Log(t.Context(), slog.LevelDebug-1, "not said")
	if want := "leasehold: tried name=job times=3 why=\"it is full\" empty=\"\"\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
