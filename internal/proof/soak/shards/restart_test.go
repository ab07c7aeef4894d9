//go:build linux

package shards

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/shard/shardhttp"
	"github.com/leasehold/leasehold/store"
)

// size is how large a restart is.
type size struct {
	workers, slices, perSecond int
	restarted                  int           // of the workers
	bound                      time.Duration // on the longest gap of 99 % of all keys
}

// restartSize returns the size, and the engines: with LEASEHOLD_SHARDS_RESTART, those of scripts/shards restart, of which docs/shard.md
// has figures. All processes share the processors of one machine: on few of them, it is those that keys wait for.
func restartSize() (s size, engines []string) {
	if all := os.Getenv("LEASEHOLD_SHARDS_RESTART"); all != "" {
		s = size{20, 1280, 5000, 20, 50 * time.Millisecond}
		if runtime.NumCPU() < 8 {
			s.bound = 500 * time.Millisecond
		}
		if n, err := strconv.Atoi(os.Getenv("LEASEHOLD_SHARDS_WRITES")); err == nil {
			s.perSecond = n
		}
		if n, err := strconv.Atoi(os.Getenv("LEASEHOLD_SHARDS_RESTARTED")); err == nil {
			s.restarted = min(n, s.workers)
		}
		return s, strings.Split(all, ",")
	}
	return size{4, 128, 500, 4, 5 * time.Second}, []string{"file"} // on a machine however busy
}

// ledger is what came of writes, and of slices.
type ledger struct {
	judge // of keys: who accepted writes under which token
	trace *trace

	accepted map[string]int // by id of the write
	starts   map[string][]turn
	ends     map[string][]turn
}

// turn is when a slice was begun or ended to be served.
type turn struct {
	pid   int
	token fence.Token
	at    clock.Instant
}

func (l *ledger) read(pid int, from io.Reader, joined func()) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		f := strings.Fields(lines.Text())
		number := func(i int) int64 {
			if i >= len(f) {
				return 0
			}
			n, _ := strconv.ParseInt(f[i], 10, 64) // 0 in half a line
			return n
		}
		if len(f) > 0 && strings.Contains("TFG", f[0]) {
			l.trace.line(pid, f)
			continue
		}
		l.mu.Lock()
		switch {
		case len(f) == 6 && f[0] == "A":
			l.accepted[f[2]]++
			l.pass(pid, f[1], fence.Token(number(3)), clock.Instant(number(4)), clock.Instant(number(5)))
		case len(f) == 4 && f[0] == "S":
			l.starts[f[1]] = append(l.starts[f[1]], turn{pid, fence.Token(number(2)), clock.Instant(number(3))})
		case len(f) == 4 && f[0] == "E":
			l.ends[f[1]] = append(l.ends[f[1]], turn{pid, fence.Token(number(2)), clock.Instant(number(3))})
		case len(f) == 1 && f[0] == "J":
			joined()
		}
		l.mu.Unlock()
	}
}

// slices returns the gaps of all moves of slices since an instant, and the longest of each slice, sorted.
func (l *ledger) slices(since clock.Instant) (gaps, longest []time.Duration, same int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, ends := range l.ends {
		most := time.Duration(-1)
		for _, e := range ends {
			next := turn{at: clock.NoDeadline} // the first that serves it under a later token
			for _, s := range l.starts[id] {
				if s.token > e.token && s.at < next.at {
					next = s
				}
			}
			if e.at < since || next.at == clock.NoDeadline {
				continue
			}
			if next.pid == e.pid {
				same++
			}
			gaps = append(gaps, next.at.Sub(e.at))
			most = max(most, next.at.Sub(e.at))
		}
		if most >= 0 {
			longest = append(longest, most)
		}
	}
	slices.Sort(gaps)
	slices.Sort(longest)
	return gaps, longest, same
}

// server is a worker's process.
type server struct {
	cmd          *exec.Cmd
	joined, done chan struct{}
	err          error
}

// restart is a run.
type restart struct {
	t    *testing.T
	at   string
	size size
	st   store.Store
	l    *ledger
}

// start starts a worker.
func (r *restart) start() *server {
	r.t.Helper()
	s := r.launch()
	select {
	case <-s.joined:
	case <-s.done:
		r.t.Fatal(s.err)
	}
	return s
}

// launch starts this binary as a process of the run.
func (r *restart) launch(env ...string) *server {
	r.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), servingEnv+"="+r.at, fmt.Sprint(slicesEnv, "=", r.size.slices), "GOMAXPROCS=2"), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	s := &server{cmd: cmd, joined: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		r.l.read(cmd.Process.Pid, out, sync.OnceFunc(func() { close(s.joined) }))
		if err := cmd.Wait(); err != nil {
			s.err = fmt.Errorf("worker %d: %w: %s", cmd.Process.Pid, err, errs.String())
		} else if errs.Len() > 0 { // it has tried again
			r.t.Logf("worker %d: %s", cmd.Process.Pid, errs.String())
		}
	}()
	return s
}

// settled waits until every slice has an owner that stays, and each worker its share, within a quarter.
func (r *restart) settled() {
	r.t.Helper()
	clk := clock.System()
	began := clk.Now()
	for clk.Now().Sub(began) < 2*time.Minute {
		owned, all := map[string]int{}, 0
		for e, err := range shard.Map(r.t.Context(), r.st, servingSpace) {
			if err == nil && e.Owner != "" && e.Next == "" {
				owned[e.Owner]++
				all++
			}
		}
		fair := r.size.slices / r.size.workers
		few := false
		for _, n := range owned {
			few = few || n < fair*3/4
		}
		if all == r.size.slices && len(owned) == r.size.workers && !few {
			return
		}
		_ = clock.Sleep(r.t.Context(), clk, 200*time.Millisecond)
	}
	r.t.Fatal("the slices are not settled within 2 minutes")
}

// writers writes keys at the rate of the size until ctx is done, and returns the times that writes took, sorted,
// and those of writes that were sent more than once.
func (r *restart) writers(ctx context.Context, client *http.Client) (took, met []time.Duration, told map[string]bool) {
	const at = 64
	clk := clock.System()
	var mu sync.Mutex
	var all sync.WaitGroup
	told = map[string]bool{}
	began := clk.Now()
	for w := range at {
		all.Go(func() {
			var mine, again []time.Duration
			var ids []string
			for n := 0; ctx.Err() == nil; n++ {
				due := began.Add(time.Duration(n*at+w) * time.Second / time.Duration(r.size.perSecond))
				_ = clock.Sleep(ctx, clk, due.Sub(clk.Now())) // it ends by ctx
				id := fmt.Sprint(w, "-", n)
				sent := clk.Now()
				times, err := r.write(client, fmt.Sprint("key-", rand.IntN(10*r.size.slices)), id)
				mine = append(mine, clk.Now().Sub(sent))
				if times > 1 {
					again = append(again, clk.Now().Sub(sent))
				}
				if err != nil {
					r.t.Errorf("write %s was lost: %v", id, err)
				}
				ids = append(ids, id)
			}
			mu.Lock()
			defer mu.Unlock()
			took, met = append(took, mine...), append(met, again...)
			for _, id := range ids {
				told[id] = true
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	slices.Sort(met)
	return took, met, told
}

// write returns how often the write was sent.
func (r *restart) write(client *http.Client, key, id string) (times int, err error) {
	var sent atomic.Int32
	req, err := http.NewRequestWithContext(context.WithValue(context.Background(), sentKey{}, &sent), http.MethodPost, "http://workers/?id="+id, http.NoBody)
	if err != nil {
		return int(sent.Load()), err
	}
	req.Header.Set(shardhttp.KeyHeader, key)
	resp, err := client.Do(req)
	if err != nil {
		return int(sent.Load()), err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return int(sent.Load()), err
	}
	if resp.StatusCode != http.StatusOK {
		return int(sent.Load()), fmt.Errorf("%s", resp.Status)
	}
	return int(sent.Load()), nil
}

func quantile(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	return of[int(q*float64(len(of)-1))].Round(100 * time.Microsecond)
}

// Every worker is restarted, one by one, while keys are written: no write is lost, accepted twice, or accepted by a worker that
// doesn't own the key; and no key waits for long.
func TestRestart(t *testing.T) {
	size, engines := restartSize()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			at := map[string]func() string{
				"file":     func() string { return filepath.Join(t.TempDir(), "shards.db") },
				"etcd":     func() string { return servers.Etcd(t).Addr },
				"postgres": func() string { return servers.Postgres(t).URL },
			}[engine]
			if at == nil {
				t.Fatalf("engine %q: want file, etcd or postgres", engine)
			}
			restarts(t, engine+" "+at(), size)
		})
	}
}

func restarts(t *testing.T, at string, size size) {
	st, finish, err := open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer finish()
	r := &restart{t: t, at: at, size: size, st: st, l: &ledger{
		judge: judge{terms: map[string][]term{}, marks: map[string]fence.Mark{}},
		trace: newTrace(), accepted: map[string]int{}, starts: map[string][]turn{}, ends: map[string][]turn{},
	}}
	var fleet []*server
	for range size.workers {
		fleet = append(fleet, r.start())
	}
	r.settled()
	router, err := shard.NewRouter(t.Context(), traced{st, func(format string, args ...any) {
		r.l.trace.line(0, strings.Fields(fmt.Sprintf(format, args...)))
	}}, servingSpace, shard.RouterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	base := &http.Transport{MaxIdleConnsPerHost: 64, MaxIdleConns: 0, DisableCompression: true}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: shardhttp.Transport(counted{base}, router, shardhttp.Options{})}

	clk := clock.System()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	type result struct {
		took, met []time.Duration
		told      map[string]bool
	}
	results := make(chan result, 1)
	for _, what := range []string{"wait", "put"} {
		beside := r.launch(floorEnv + "=" + what)
		defer func() { _ = beside.cmd.Process.Kill() }()
	}
	since := clk.Now()
	worked, had := busy()
	go func() {
		took, met, told := r.writers(ctx, client)
		results <- result{took, met, told}
	}()
	for _, old := range slices.Clone(fleet[:size.restarted]) {
		_ = old.cmd.Process.Signal(syscall.SIGTERM)
		<-old.done
		if old.err != nil {
			t.Error(old.err)
		}
		fleet = append(fleet[1:], r.start())
		r.settled()
	}
	lasted := clk.Now().Sub(since)
	workedNow, hadNow := busy()
	stop()
	wrote := <-results
	gaps, longest, same := r.l.slices(since)
	for _, s := range fleet {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, s := range fleet {
		<-s.done
		if s.err != nil {
			t.Error(s.err)
		}
	}
	r.verdict(wrote.told)
	t.Logf("%s: %d of %d workers restarted one by one in %v, %d slices, %d writes (%.0f/s): took p50 %v, p99 %v, max %v",
		strings.Fields(at)[0], size.restarted, size.workers, lasted.Round(time.Millisecond), size.slices, len(wrote.took), float64(len(wrote.took))/lasted.Seconds(),
		quantile(wrote.took, .5), quantile(wrote.took, .99), quantile(wrote.took, 1))
	t.Logf("%d writes met a move: took p50 %v, p90 %v, p99 %v, max %v; the processors of the machine were busy for %.0f %% of the time",
		len(wrote.met), quantile(wrote.met, .5), quantile(wrote.met, .9), quantile(wrote.met, .99), quantile(wrote.met, 1),
		100*float64(workedNow-worked)/float64(max(hadNow-had, 1)))
	t.Logf("%d moves (%d to the same worker): gap p50 %v, p90 %v, p99 %v, max %v; the longest of each slice: p50 %v, p99 %v",
		len(gaps), same, quantile(gaps, .5), quantile(gaps, .9), quantile(gaps, .99), quantile(gaps, 1), quantile(longest, .5), quantile(longest, .99))
	r.l.trace.report(t.Logf, r.l.trace.passings(r.l, size.slices, since))
	if len(longest) < size.slices*9/10 && size.restarted == size.workers {
		t.Errorf("%d of %d slices have moved", len(longest), size.slices)
	}
	if got := quantile(longest, .99); got > size.bound {
		t.Errorf("the longest gap of a slice, p99: %v; want at most %v", got, size.bound)
	}
}

// verdict judges what workers accepted, against what writers were told.
func (r *restart) verdict(told map[string]bool) {
	wrong, _ := r.l.verdict(0)
	for _, w := range wrong {
		r.t.Error(w)
	}
	lost, twice := 0, 0
	for id := range told {
		switch n := r.l.accepted[id]; {
		case n == 0:
			lost++
		case n > 1:
			twice++
		}
	}
	if lost > 0 || twice > 0 || len(told) != len(r.l.accepted) {
		r.t.Errorf("of %d writes, %d were lost and %d accepted twice; %d were accepted in all", len(told), lost, twice, len(r.l.accepted))
	}
	if len(told) < r.size.perSecond {
		r.t.Errorf("%d writes in all", len(told))
	}
}
