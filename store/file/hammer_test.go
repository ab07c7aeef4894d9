package file

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

var hammerTime = flag.Duration("hammer", 10*time.Second, "how long BenchmarkProcesses hammers one file")

// latencies are those of one process, in nanoseconds.
type latencies struct {
	Take, Release, Renew []int64
	Conflicts            int
}

// begin opens the store, says so, and waits to be told how long to go on.
func begin() (*Store, time.Time, error) {
	s, err := Open(context.Background(), args().Path, Options{})
	if err != nil {
		return nil, time.Time{}, err
	}
	fmt.Println("ready")
	line, _ := told()()
	d, err := time.ParseDuration(line)
	return s, time.Now().Add(d), err
}

func timed(into *[]int64, f func() error) error {
	start := time.Now()
	err := f()
	*into = append(*into, int64(time.Since(start)))
	return err
}

// hammerHelper takes and releases its own key, and after every third time one that all share, as fast as it can.
func hammerHelper() error {
	s, end, err := begin()
	if err != nil {
		return err
	}
	var l latencies
	for i := 0; time.Now().Before(end); i++ {
		key := args().Key
		if i%4 == 3 {
			key = "shared"
		}
		err := l.cycle(s, key)
		if errors.Is(err, store.ErrConflict) || errors.Is(err, errTaken) {
			l.Conflicts++
			continue
		}
		if err != nil {
			return err
		}
	}
	return l.finish(s)
}

var errTaken = errors.New("somebody holds it")

// cycle takes and releases a key.
func (l *latencies) cycle(s *Store, key string) error {
	ctx := context.Background()
	rec, err := store.Load(ctx, s, key)
	if err != nil {
		return err
	}
	if rec.Owner != "" {
		return errTaken
	}
	rec.Owner, rec.Token, rec.TTL = "process "+args().Key, rec.Token+1, time.Minute
	err = timed(&l.Take, func() (err error) { rec, err = s.Put(ctx, rec); return err })
	if err != nil {
		return err
	}
	rec.Owner = ""
	return timed(&l.Release, func() error { _, err := s.Put(ctx, rec); return err })
}

// renewHelper renews one hold every 20 ms.
func renewHelper() error {
	s, end, err := begin()
	if err != nil {
		return err
	}
	ctx := context.Background()
	rec, err := s.Put(ctx, store.Record{Key: args().Key, Owner: "renewer", Token: 1, TTL: time.Minute})
	if err != nil {
		return err
	}
	var l latencies
	for time.Now().Before(end) {
		if err := timed(&l.Renew, func() (err error) { rec, err = s.Put(ctx, rec); return err }); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return l.finish(s)
}

func (l *latencies) finish(s *Store) error {
	return errors.Join(s.Close(), json.NewEncoder(os.Stdout).Encode(l))
}

// hammer starts that many helpers on one new file, lets them go together for d, and returns their latencies.
func hammer(t testing.TB, processes, renewers int, d time.Duration) (all latencies) {
	t.Helper()
	path := testPath(t)
	var ps []*process
	for i := range processes + renewers {
		name := "hammer"
		if i >= processes {
			name = "renew"
		}
		ps = append(ps, start(t, name, helperArgs{Path: path, Key: strconv.Itoa(i)}))
	}
	for _, p := range ps {
		p.line(t)
	}
	for _, p := range ps {
		p.tell(t, d.String())
	}
	for _, p := range ps {
		var l latencies
		if err := json.Unmarshal([]byte(p.line(t)), &l); err != nil {
			t.Fatal(err)
		}
		all.Take = append(all.Take, l.Take...)
		all.Release = append(all.Release, l.Release...)
		all.Renew = append(all.Renew, l.Renew...)
		all.Conflicts += l.Conflicts
		p.stop(t)
	}
	return all
}

// BenchmarkProcesses hammers one file with many processes for -hammer, whatever b.N is, and reports the latencies of a
// write. Run it with -benchtime 1x.
func BenchmarkProcesses(b *testing.B) {
	for _, processes := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("hammer=%d", processes), func(b *testing.B) {
			defer probeSync(b)()
			l := hammer(b, processes, 0, *hammerTime)
			report(b, "", slices.Concat(l.Take, l.Release))
			b.ReportMetric(float64(len(l.Take)+len(l.Release))/hammerTime.Seconds(), "writes/s")
		})
	}
	b.Run("renewal-under=63", func(b *testing.B) {
		defer probeSync(b)()
		l := hammer(b, 63, 1, *hammerTime)
		report(b, "", l.Renew)
		report(b, "take-", l.Take)
	})
}

// probeSync syncs a small file of its own every 20 ms, until the function that it returns is called, and reports how long that
// took: no store can be quicker than the disk and the scheduler were meanwhile.
func probeSync(b *testing.B) (stop func()) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var ns []int64
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			if err := timed(&ns, func() error { return appendSync(f) }); err != nil {
				b.Error(err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	return func() {
		cancel()
		group.Wait()
		_ = f.Close()
		report(b, "sync-", ns)
	}
}

// report reports a distribution of latencies.
func report(b *testing.B, prefix string, ns []int64) {
	slices.Sort(ns)
	at := func(p float64) float64 { return float64(ns[min(int(p*float64(len(ns))), len(ns)-1)]) / 1e6 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(at(0.5), prefix+"p50-ms")
	b.ReportMetric(at(0.99), prefix+"p99-ms")
	b.ReportMetric(at(0.999), prefix+"p99.9-ms")
	b.ReportMetric(at(1), prefix+"worst-ms")
}

// countHelper raises the token of the one key N times.
func countHelper() error {
	s, err := Open(context.Background(), args().Path, Options{})
	if err != nil {
		return err
	}
	for range args().N {
		if _, err := raise(s, args().Key); err != nil {
			return err
		}
	}
	return s.Close()
}

// raise raises the token of key by one, however many others do.
func raise(s *Store, key string) (fence.Token, error) {
	rec, err := store.Load(context.Background(), s, key)
	for err == nil {
		next := rec
		next.Token++
		next, err = s.Put(context.Background(), next)
		if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
			rec, err = conflict.Current, nil
			continue
		}
		return next.Token, err
	}
	return 0, err
}

// No update of any process is lost, and each is seen by every other.
func TestManyProcesses(t *testing.T) {
	const processes, each = 8, 50
	path := testPath(t)
	var ps []*process
	for range processes {
		ps = append(ps, start(t, "count", helperArgs{Path: path, Key: "counter", N: each}))
	}
	for _, p := range ps {
		p.stop(t)
	}
	rec, err := testOpen(t, path).Get(t.Context(), "counter")
	if err != nil || rec.Token != processes*each {
		t.Errorf("token %d, %v; want %d", rec.Token, err, processes*each)
	}
}
