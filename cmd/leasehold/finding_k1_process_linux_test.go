package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// realStores are a file, all engines with a server, and a lock server, by name. Each starts a server and returns the store's URL and what is
// to be in the environment.
var realStores = func() map[string]func(testing.TB) (url string, env []string) {
	all := map[string]func(testing.TB) (string, []string){
		"file": func(t testing.TB) (string, []string) { return "file:" + filepath.Join(t.TempDir(), "leases.db"), nil },
		"server": func(t testing.TB) (string, []string) { // in front of a store without ages
			return newPlace(t).serve("--store", "etcd://"+servers.Etcd(t).Addr).url, nil
		},
	}
	for _, kind := range servers.Kinds() {
		all[kind.Name()] = func(t testing.TB) (string, []string) {
			st := kind.Start(t).Store()
			if st.Init != "" {
				cmd := newPlace(t).command("init", st.Init)
				cmd.Env = append(append(cmd.Env, "LEASEHOLD_STORE="+st.URL), st.Env...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("init %s: %v\n%s", st.Init, err, out)
				}
			}
			return st.URL, st.Env
		}
	}
	return all
}()

// A holder is killed. New processes that try once a second, and don't wait, have its name within TTL + 2 s: on
// every engine, whether it vouches for ages or not, for a name as a whole and for a share.
func TestFinding_K1_NoWaitTakesADeadHoldersName(t *testing.T) {
	engines := map[string]func(*testing.T){}
	for engine, start := range realStores {
		engines[engine] = func(t *testing.T) {
			url, env := start(t)
			together(t, 3, map[string]func(*testing.T){
				"whole": func(t *testing.T) { stalltest.Run(t, func(t testing.TB) { takenByTries(t, url, env, "whole", nil) }) },
				"slots": func(t *testing.T) {
					stalltest.Run(t, func(t testing.TB) { takenByTries(t, url, env, "slots", []string{"--slots", "1"}) })
				},
				"list": func(t *testing.T) { stalltest.Run(t, func(t testing.TB) { listedAsDead(t, url, env) }) },
			})
		}
	}
	together(t, 3, engines)
}

// together runs tests at once, so many whatever -parallel says: for the most part they wait.
func together(t *testing.T, most int, tests map[string]func(*testing.T)) {
	t.Helper()
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, most)
	for name, test := range tests {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			t.Run(name, test)
		})
	}
}

func takenByTries(t testing.TB, url string, env []string, way string, flags []string) {
	const ttl = 4 * time.Second
	p := newPlace(t)
	name := way + "-" + filepath.Base(p.dir)
	command := func(args ...string) *exec.Cmd {
		cmd := p.command(args...)
		cmd.Env = append(append(cmd.Env, "LEASEHOLD_STORE="+url), env...)
		return cmd
	}
	run := func(how []string, argv ...string) *exec.Cmd {
		return command(append(append(append(append([]string{"run", name}, shortTTL...), flags...), how...), append([]string{"--"}, argv...)...)...)
	}
	holder := p.launch(run(nil, "ticker", "ticks"))
	p.ticked("ticks")
	holder.signal(syscall.SIGKILL)
	killed := clock.System().Now()
	<-holder.ended
	var took time.Duration // until the try that got it began: how long a process takes to start is the machine's
	for try := killed; ; try = try.Add(time.Second) {
		time.Sleep(try.Sub(clock.System().Now()))
		took = clock.System().Now().Sub(killed)
		out, err := run([]string{"-n"}, "stamp", "ran").CombinedOutput()
		if err == nil {
			break
		}
		if !strings.Contains(string(out), "held by") || took > ttl+10*time.Second {
			t.Fatalf("after %v: %v\n%s", took, err, out)
		}
	}
	if took > ttl+2*time.Second {
		t.Errorf("the name was taken %v after its holder's end, want %v at most", took, ttl+2*time.Second)
	}
	t.Logf("taken after %v", took)
	if out, err := command("list", name, "-o", "json").CombinedOutput(); err != nil || strings.Contains(string(out), `"held"`) {
		t.Errorf("list: %v\n%s", err, out)
	}
	if left, err := os.ReadDir(p.path(".local/state/leasehold/sightings")); len(left) > 1 && len(flags) == 0 {
		t.Errorf("%d sightings are left: %v", len(left), err)
	}
}

// listedAsDead kills a holder whose name nobody wants. Processes that list names, once a second each, say within TTL + 2 s that it is
// expired, and not before the end of a TTL without a proof.
func listedAsDead(t testing.TB, url string, env []string) {
	const ttl = 4 * time.Second
	p := newPlace(t)
	command := func(args ...string) *exec.Cmd {
		cmd := p.command(args...)
		cmd.Env = append(append(cmd.Env, "LEASEHOLD_STORE="+url), env...)
		return cmd
	}
	name := "listed-" + filepath.Base(p.dir)
	state := func() string {
		t.Helper()
		out, err := command("list", name, "-o", "jsonl").CombinedOutput()
		var row struct{ State string }
		if err == nil {
			err = json.Unmarshal(out, &row)
		}
		if err != nil {
			t.Fatalf("list: %v\n%s", err, out)
		}
		return row.State
	}
	holder := p.launch(command(append(append([]string{"run", name}, shortTTL...), "--", "ticker", "ticks")...))
	p.ticked("ticks")
	for range 2 {
		if got := state(); got != "held" {
			t.Errorf("a holder that lives is listed as %s", got)
		}
		time.Sleep(ttl / 2)
	}
	holder.signal(syscall.SIGKILL)
	killed := clock.System().Now()
	<-holder.ended
	for try := killed; ; try = try.Add(time.Second) {
		time.Sleep(try.Sub(clock.System().Now()))
		asked := clock.System().Now()
		got := state()
		if got == "expired" {
			t.Logf("listed as expired %v after its holder's end", asked.Sub(killed))
			return
		}
		if took := asked.Sub(killed); got != "held" || took > ttl+2*time.Second {
			t.Fatalf("%v after its holder's end the name is listed as %s, want expired after %v at most", took, got, ttl+2*time.Second)
		}
	}
}
