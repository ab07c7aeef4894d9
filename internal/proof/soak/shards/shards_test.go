//go:build linux

package shards

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
)

// term is one term of a key, as its worker's checks showed it.
type term struct {
	token           fence.Token
	pid             int
	firstTo, lastAt clock.Instant // the end of the first check that passed, the beginning of the last
}

// judge takes down what workers see, in the order in which it comes.
type judge struct {
	mu                        sync.Mutex
	terms                     map[string][]term // by key
	marks                     map[string]fence.Mark
	passed, accepted, refused int
	twins                     []string // one token of two workers
}

// read takes down what a worker says, and reports whether it said anything.
func (j *judge) read(pid int, from io.Reader) (spoke bool) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		spoke = true
		f := strings.Fields(lines.Text())
		if len(f) < 3 {
			continue // a worker that was killed leaves half a line
		}
		n, err := strconv.ParseUint(f[2], 10, 64)
		if err != nil {
			continue
		}
		token := fence.Token(n)
		j.mu.Lock()
		switch {
		case f[0] == "W":
			j.write(pid, f[1], token)
		case f[0] == "P" && len(f) == 5:
			begun, err := strconv.ParseInt(f[3], 10, 64)
			ended, err2 := strconv.ParseInt(f[4], 10, 64)
			if err == nil && err2 == nil {
				j.pass(pid, f[1], token, clock.Instant(begun), clock.Instant(ended))
			}
		}
		j.mu.Unlock()
	}
	return spoke
}

// write is the guard's: it refuses what is stale.
func (j *judge) write(pid int, key string, token fence.Token) {
	mark, err := j.marks[key].Admit(key, fmt.Sprint(pid), token)
	if err == nil {
		j.marks[key] = mark
		j.accepted++
		return
	}
	j.refused++
	if token == mark.Token {
		j.twins = append(j.twins, err.Error())
	}
}

func (j *judge) pass(pid int, key string, token fence.Token, from, to clock.Instant) {
	j.passed++
	all := j.terms[key]
	i := slices.IndexFunc(all, func(t term) bool { return t.token == token && t.pid == pid })
	if i < 0 {
		j.terms[key] = append(all, term{token, pid, to, from})
		return
	}
	all[i].firstTo, all[i].lastAt = min(all[i].firstTo, to), max(all[i].lastAt, from)
}

// verdict returns what was wrong, and the gaps between the terms of each key since an instant.
func (j *judge) verdict(since clock.Instant) (wrong []string, gaps []time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	wrong = j.twins
	for key, all := range j.terms {
		slices.SortFunc(all, func(a, b term) int { return cmp.Compare(a.token, b.token) })
		for i := 1; i < len(all); i++ {
			a, b := all[i-1], all[i]
			if a.lastAt > b.firstTo {
				wrong = append(wrong, fmt.Sprintf("%s: process %d passed under token %d until %d, and process %d under token %d from %d", key, a.pid, a.token, a.lastAt, b.pid, b.token, b.firstTo))
			}
			if a.lastAt >= since {
				gaps = append(gaps, b.firstTo.Sub(a.lastAt))
			}
		}
	}
	slices.Sort(gaps)
	return wrong, gaps
}

// fleet is the workers of a run.
type fleet struct {
	t     *testing.T
	at    string
	judge *judge

	mu  sync.Mutex
	all []*worker
	wg  sync.WaitGroup
}

type worker struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func (f *fleet) start() *worker {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), workerEnv+"="+f.at)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	w := &worker{cmd, make(chan struct{})}
	f.wg.Go(func() {
		defer close(w.done)
		spoke := f.judge.read(cmd.Process.Pid, out)
		err := cmd.Wait()
		if text := errs.String(); text != "" && os.Getenv("LEASEHOLD_SHARDS_VERBOSE") != "" {
			f.t.Logf("worker %d: %s", cmd.Process.Pid, text)
		}
		// A process that is ended before it listens to signals has owned nothing.
		early := err != nil && err.Error() == "signal: terminated" && !spoke
		if err != nil && !early && !strings.Contains(err.Error(), "killed") {
			f.t.Errorf("worker %d: %v: %s", cmd.Process.Pid, err, errs.String())
		}
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, w)
	return w
}

// take takes a worker out of the fleet: one at random, or that of a process.
func (f *fleet) take(pid int) *worker {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		return nil
	}
	i := slices.IndexFunc(f.all, func(w *worker) bool { return w.cmd.Process.Pid == pid })
	if i < 0 {
		i = rand.IntN(len(f.all))
	}
	w := f.all[i]
	f.all = slices.Delete(f.all, i, i+1)
	return w
}

func (w *worker) signal(s syscall.Signal) { _ = w.cmd.Process.Signal(s) } // it may have ended

// trouble makes trouble until ctx is done.
func (f *fleet) trouble(ctx context.Context, st store.Store, procs int) (counts [4]int) {
	clk := clock.System()
	for clock.Sleep(ctx, clk, 200*time.Millisecond+rand.N(400*time.Millisecond)) == nil {
		what, pid := rand.IntN(4), 0
		if what == 3 { // the assigner
			rec, err := store.Load(ctx, st, "shard/"+space)
			if parts := strings.Split(rec.Owner, "/"); err == nil && len(parts) > 1 {
				pid, _ = strconv.Atoi(parts[len(parts)-2]) // 0 is any
			}
		}
		w := f.take(pid)
		counts[what]++
		switch what {
		case 0, 3:
			w.signal(syscall.SIGKILL)
		case 1:
			w.signal(syscall.SIGTERM)
		case 2:
			w.signal(syscall.SIGSTOP)
			f.wg.Go(func() {
				_ = clock.Sleep(context.Background(), clk, rand.N(2*ttl))
				w.signal(syscall.SIGCONT)
				w.signal(syscall.SIGTERM)
			})
		}
		f.mu.Lock()
		n := len(f.all)
		f.mu.Unlock()
		for ; n < procs-rand.IntN(procs/2+1); n++ {
			f.start()
		}
	}
	return counts
}

// owned waits until each slice has an owner that lives.
func (f *fleet) owned(ctx context.Context, st store.Store) time.Duration {
	clk := clock.System()
	began := clk.Now()
	for {
		alive := map[string]bool{}
		f.mu.Lock()
		for _, w := range f.all {
			alive[fmt.Sprint(w.cmd.Process.Pid)] = true
		}
		f.mu.Unlock()
		n := 0
		for e, err := range shard.Map(ctx, st, space) {
			if err != nil {
				break
			}
			if parts := strings.Split(e.Owner, "/"); e.Next == "" && len(parts) > 3 && alive[parts[len(parts)-3]] {
				n++
			}
		}
		took := clk.Now().Sub(began)
		if n == numParts {
			return took
		}
		if took > 10*ttl {
			f.dump(ctx, st, alive)
			return took
		}
		_ = clock.Sleep(ctx, clk, 20*time.Millisecond)
	}
}

// dump logs what keeps slices from having an owner that lives.
func (f *fleet) dump(ctx context.Context, st store.Store, alive map[string]bool) {
	leader, err := store.Load(ctx, st, "shard/"+space)
	members, err2 := shard.Members(ctx, st, space)
	f.t.Logf("alive %v; assigner %s, %v; %v", alive, leader.Owner, err, err2)
	for _, m := range members {
		f.t.Logf("member %s, leaving %t", m.Session, m.Leaving)
	}
	for e, err := range shard.Map(ctx, st, space) {
		if parts := strings.Split(e.Owner, "/"); err != nil || e.Next != "" || len(parts) < 4 || !alive[parts[len(parts)-3]] {
			f.t.Logf("%s: owner %q, next %q, %v", e.ID(), e.Owner, e.Next, err)
		}
	}
}

// lasts returns for how long, and with how many processes, there is trouble.
func lasts(t *testing.T) (time.Duration, int) {
	d, procs := 6*time.Second, 6
	var err error
	if text := os.Getenv("LEASEHOLD_SHARDS_FOR"); text != "" {
		d, err = time.ParseDuration(text)
		procs = 20
	}
	if err != nil {
		t.Fatal(err)
	}
	return d, procs
}

func TestProcesses(t *testing.T) {
	for engine, at := range map[string]func(t *testing.T) string{
		"file":     func(t *testing.T) string { return filepath.Join(t.TempDir(), "shards.db") },
		"etcd":     func(t *testing.T) string { return servers.Etcd(t).Addr },
		"postgres": func(t *testing.T) string { return servers.Postgres(t).URL },
	} {
		t.Run(engine, func(t *testing.T) { processes(t, engine+" "+at(t)) })
	}
}

// patience is how long slices may be without an owner before that is a bug, on a machine however busy. How long it took is printed.
const patience = time.Minute

func processes(t *testing.T, at string) {
	lasting, procs := lasts(t)
	clk := clock.System()
	st, finish, err := open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer finish()
	f := &fleet{t: t, at: at, judge: &judge{terms: map[string][]term{}, marks: map[string]fence.Mark{}}}
	for range procs {
		f.start()
	}
	if took := f.owned(t.Context(), st); took > patience {
		t.Errorf("at first, all slices are owned after %v", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	counts := f.trouble(ctx, st, procs)
	cancel()
	for range procs - len(f.all) {
		f.start()
	}
	recovered := f.owned(t.Context(), st)
	if recovered > patience {
		t.Errorf("after the trouble, all slices are owned after %v", recovered)
	}
	since := clk.Now()
	for range procs { // a planned restart of each, one by one
		f.mu.Lock()
		pid := f.all[0].cmd.Process.Pid
		f.mu.Unlock()
		f.start()
		f.owned(t.Context(), st)
		old := f.take(pid)
		old.signal(syscall.SIGTERM)
		<-old.done
	}
	f.owned(t.Context(), st)
	wrong, gaps := f.judge.verdict(since)
	for w := f.take(0); w != nil; w = f.take(0) {
		w.signal(syscall.SIGTERM)
	}
	f.wg.Wait()
	later, _ := f.judge.verdict(since)
	for _, w := range slices.Concat(wrong, later) {
		t.Error(w)
	}
	j := f.judge
	quantile := func(q float64) time.Duration {
		if len(gaps) == 0 {
			return 0
		}
		return gaps[int(q*float64(len(gaps)-1))]
	}
	t.Logf("%d processes, %v; %d killed, %d left, %d stopped, %d assigners killed; %d checks passed, %d writes accepted, %d refused; recovered in %v; "+
		"restart one by one: %d moves of keys, gap p50 %v, p99 %v, max %v", procs, lasting, counts[0], counts[1], counts[2], counts[3],
		j.passed, j.accepted, j.refused, recovered.Round(time.Millisecond), len(gaps), quantile(.5), quantile(.99), quantile(1))
	if j.passed < 1000 || j.accepted < 100 || len(gaps) < numKeys/2 {
		t.Error("too little of something")
	}
}
