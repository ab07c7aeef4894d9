package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "worker" { // the workers are processes of this binary
		main()
		return
	}
	os.Exit(m.Run())
}

// While every worker is restarted, no write fails, no read is stale, and most reads are of memory.
func TestRollingRestart(t *testing.T) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var out bytes.Buffer
	r, err := play(ctx, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Log(strings.TrimSpace(out.String()))
	if r.stale.Load() > 0 || r.lateWrites > 0 {
		t.Errorf("%d reads were stale, and the database refused %d writes", r.stale.Load(), r.lateWrites)
	}
	if r.writes.Load() < 100 || r.reads.Load() < 300 {
		t.Errorf("%d writes, %d reads", r.writes.Load(), r.reads.Load())
	}
	// Each restart moves each key twice at most, and loads it once each time.
	if most := int64(3 * workers * clients * keys); r.database > most {
		t.Errorf("the database was read %d times; want at most %d", r.database, most)
	}
}
