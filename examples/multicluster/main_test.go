package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

// TestMain lets the test program be a controller, and the hook, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "-controller" || os.Args[1] == "-hook") {
		main()
		return
	}
	goleak.VerifyTestMain(servers.Main(m))
}

// played plays on real servers, which have to be installed.
func played(t *testing.T, p *play) (*result, string) {
	t.Helper()
	for engine, program := range map[string]string{"kubernetes": "kube-apiserver", "etcd": "etcd"} {
		if _, err := servers.Program(engine, program); err != nil {
			if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
				t.Fatal(err)
			}
			t.Skipf("not tried here: %v", err)
		}
	}
	var out bytes.Buffer
	p.out = &out
	r, err := p.run(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	r.show(&out)
	return r, out.String()
}

// TestPlay: faults of each kind, in each way in which a controller learns its role. The proof at
// length is `go run ./examples/multicluster -faults 50`.
func TestPlay(t *testing.T) {
	t.Parallel()
	p := &play{modes: []string{modeLibrary, modeProcess, modeNotify}, faults: 5}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("not tried here: leasehold can't be built: %v", err)
	}
	r, out := played(t, p)
	t.Log(out)
	if !r.good() || len(r.faults) != p.faults || r.terms < 4 {
		t.Errorf("%+v", r)
	}
}

// TestOpenGateIsNoticed: without the gate, and without a mark on what they write, the side that has
// handed over writes on, and the audit logs show it.
func TestOpenGateIsNoticed(t *testing.T) {
	t.Parallel()
	if r, out := played(t, &play{modes: []string{modeLibrary}, faults: 2, open: true}); len(r.foreign) == 0 {
		t.Errorf("nothing was noticed:\n%s", out)
	}
}

// TestForeignWritesAreNoticed: the audit finds the writes of a side that was not active.
func TestForeignWritesAreNoticed(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	w := func(pod string, token int, came, answered int) written {
		return written{cluster: "one", pod: pod, object: "x", token: fence.Token(token), came: at(came), answered: at(answered)}
	}
	for name, c := range map[string]struct {
		all  []written
		want string
	}{
		"in order":            {[]written{w("east", 1, 0, 1), w("west", 2, 2, 3)}, ""},
		"at the same time":    {[]written{w("east", 1, 2, 5), w("west", 2, 3, 4)}, ""},
		"after a later term":  {[]written{w("west", 2, 0, 1), w("east", 1, 2, 3)}, "after a write of term 2"},
		"without a term":      {[]written{w("east", 0, 0, 1)}, "without a term"},
		"under another's":     {[]written{w("east", 1, 0, 1), w("west", 1, 2, 3)}, "which is east's"},
		"in another cluster":  {[]written{w("west", 2, 0, 1), {cluster: "two", pod: "east", token: 1, came: at(2), answered: at(3)}}, "east wrote  in two under term 1"},
		"back to a later one": {[]written{w("east", 1, 0, 1), w("west", 2, 2, 3), w("east", 3, 4, 5)}, ""},
	} {
		got := strings.Join(foreign(c.all), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
