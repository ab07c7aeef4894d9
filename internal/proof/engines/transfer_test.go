package engines

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/golden"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
)

var handovers = flag.Int("handovers", 0, "how many hand-overs TestPlannedHandover measures of each kind: 3, or 100 with -update")

// TestPlannedHandover has two candidates pass the leadership to and fro. The leader writes to a fenced resource all the time; a gap
// is the time from the last write of one term that the resource has accepted to the first one of the next.
func TestPlannedHandover(t *testing.T) {
	n := *handovers
	if n == 0 && *update {
		n = 100
	} else if n == 0 {
		n = 3
	}
	var text bytes.Buffer
	text.WriteString("| engine | transfer: p50 | p99 | release and wait: p50 | p99 |\n|---|---|---|---|---|\n")
	rows := 0
	measure := func(t *testing.T, name string, open func() store.Store) {
		transfer := gaps(t, n, open, func(term election.Term, to string) {
			if err := term.HandOver(t.Context(), to); err != nil {
				t.Fatal(err)
			}
		})
		release := gaps(t, n, open, func(term election.Term, _ string) { term.Resign() })
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", name, at(transfer, 50), at(transfer, 99), at(release, 50), at(release, 99))
		rows++
	}
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "leases.db")
		measure(t, "file", func() store.Store {
			st, err := file.Open(t.Context(), path, file.Options{})
			return opened(t, st, err)
		})
	})
	for _, k := range kinds {
		if !k.planned {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			srv := k.start(t)
			inst := k.prepare(t, srv)
			measure(t, k.name, func() store.Store { return inst.open(t, srv.Addr) })
		})
	}
	t.Logf("\n%s", text.String())
	if t.Failed() || rows < 4 {
		return // what is missing has said so
	}
	golden.Check(t, "../../../docs/election.md", "hand-over", "go test ./internal/proof/engines -run TestPlannedHandover -update", text.Bytes(), *update)
}

// at returns a percentile of gaps in order.
func at(gaps []time.Duration, percent int) string {
	return fmt.Sprintf("%.1f ms", float64(gaps[len(gaps)*percent/100].Microseconds())/1000)
}

// resource is what the leaders write to.
type resource struct {
	mu    sync.Mutex
	mark  fence.Mark
	wrote time.Time          // last
	gaps  chan time.Duration // from each term to the next
}

// write accepts a write of a term that may write.
func (r *resource) write(term election.Term) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.mark.Token
	mark, err := r.mark.Admit(term.Name, term.Leader, term.Token)
	if err != nil {
		return err
	}
	now := time.Now()
	if before != 0 && term.Token != before {
		r.gaps <- now.Sub(r.wrote)
	}
	r.mark, r.wrote = mark, now
	return nil
}

// gaps has two candidates hand over n times, and returns the gaps in order.
func gaps(t *testing.T, n int, open func() store.Store, step func(term election.Term, to string)) []time.Duration {
	t.Helper()
	name := fmt.Sprintf("planned-%d", time.Now().UnixNano())
	r := &resource{gaps: make(chan time.Duration, 1)}
	terms := make(chan election.Term, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var owners []string
	for range 2 {
		m, err := lease.NewManager(open(), lease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		owners = append(owners, m.Holder())
		group.Go(func() {
			_ = election.Run(ctx, m, name, election.Callbacks{OnStartedLeading: func(ctx context.Context, term election.Term) {
				terms <- term
				for ctx.Err() == nil {
					if err := r.write(term); err != nil {
						t.Error(err)
						return
					}
					time.Sleep(50 * time.Microsecond)
				}
			}}, election.Options{}) // when the context ends
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	term := <-terms
	bothStand(t, open(), name)
	var all []time.Duration
	for range n {
		other := owners[0]
		if term.Leader == other {
			other = owners[1]
		}
		step(term, other)
		next := <-terms
		if next.Leader != other || next.Token <= term.Token {
			t.Errorf("%s leads in term %d, want %s after %d", next.Leader, next.Token, other, term.Token)
		}
		term = next
		all = append(all, <-r.gaps)
		time.Sleep(20 * time.Millisecond) // by then the old leader waits again
	}
	slices.Sort(all)
	return all
}

// bothStand waits until both candidates are on the list.
func bothStand(t *testing.T, st store.Store, name string) {
	t.Helper()
	for {
		s, err := election.ReadState(t.Context(), st, name)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Candidates) == 2 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
