package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// TestMain lets the test program be an instance, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-instance" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestNextSceneWaitsForBoth: after a hand-over the successor may say that it is active before the predecessor says that it no longer
// is. The next scene must not befall the predecessor.
func TestNextSceneWaitsForBoth(t *testing.T) {
	s := &show{out: io.Discard, procs: map[string]*process{"east": {}, "west": {}}}
	s.said("east", line{State: "active"})
	s.said("west", line{State: "active"})
	var told atomic.Bool
	late := time.AfterFunc(50*time.Millisecond, func() {
		told.Store(true)
		s.said("east", line{State: "passive"})
	})
	defer late.Stop()
	if pod, err := s.active(t.Context()); pod != "west" || err != nil || !told.Load() {
		t.Errorf("%q (%v) was called active; had east said that it no longer is: %v", pod, err, told.Load())
	}
}

// TestPlay plays all of it on a file. Its leases last for 3 s, and the scenes want them kept until something befalls them.
func TestPlay(t *testing.T) {
	stalltest.Run(t, func(t testing.TB) {
		var out bytes.Buffer
		s := &show{backend: fileBackend(t.TempDir()), dir: t.TempDir(), began: now(), out: &out, exe: mustSelf()}
		defer s.end()
		if err := s.play(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		for _, want := range []string{"crash", "switchover", "it took", "outage", "store answers again", "SKIP-LEASE-POD", "resume"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in:\n%s", want, out.String())
			}
		}
		if n := strings.Count(out.String(), "ACTIVE"); n < 5 || s.accepted == 0 || s.both != 0 {
			t.Errorf("%d terms, %d writes accepted, %d of both at once\n%s", n, s.accepted, s.both, out.String())
		}
	})
}
