package plan

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/engines"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// benchPrefix begins the names that bench makes.
const benchPrefix = "leasehold-bench-"

// result is what a row of bench says in JSON.
type result struct {
	What    string  `json:"what"`
	Callers int     `json:"callers"`
	PerSec  float64 `json:"per_second"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
}

func (a *app) benchCommand() *cobra.Command {
	callers := []int{1, 16, 64}
	length := 2 * time.Second
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the store that is set",
		Long: "Acquire and release names of its own as fast as the store allows, for 1, 16 and 64 callers at a time, and delete them\n" +
			"afterwards. For a store in a file the rate of the file system's own fsync stands beside it.",
		Example: "  leasehold bench --store file:/var/lib/app/leases.db",
		Args:    cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, n := range callers {
				if n < 1 || n > 1000 {
					return cli.Usage("--callers %d: want 1 to 1000", n)
				}
			}
			if length <= 0 {
				return cli.Usage("--for %v: want more than 0", length)
			}
			return a.WithStore(cmd.Context(), true, func(st store.Store) error {
				results, err := a.bench(cmd.Context(), st, callers, length)
				if err != nil {
					return err
				}
				if a.Output() != output.Table {
					return output.WriteList(a.Out, results, a.Output() == output.Lines)
				}
				return output.WriteTable(a.Out, benchColumns(results), output.Width(a.Out), nil)
			})
		},
	}
	cmd.Flags().IntSliceVar(&callers, "callers", callers, "how many callers at a time, one row each")
	cli.DurationVar(cmd.Flags(), &length, "for", length, "how long each row is measured")
	a.Flag(cmd.Flags(), "output")
	return cmd
}

func (a *app) bench(ctx context.Context, st store.Store, callers []int, length time.Duration) ([]result, error) {
	var results []result
	url, _, err := engines.URL(a.App)
	if err != nil {
		return nil, err
	}
	if dir := url.Dir(); dir != "" {
		a.Say("fsync in %s…", dir)
		r, err := a.benchSync(ctx, dir, length)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	for _, n := range callers {
		a.Say("acquire and release, %d at a time…", n)
		r, err := a.benchPairs(ctx, st, n, length)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// benchSync measures writing a page to a file and syncing it.
func (a *app) benchSync(ctx context.Context, dir string, length time.Duration) (r result, err error) {
	f, err := os.CreateTemp(dir, benchPrefix)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4096)
	return a.measure(ctx, "fsync", 1, length, func(context.Context, int) error {
		if _, err := f.WriteAt(page, 0); err != nil {
			return err
		}
		return f.Sync()
	})
}

// benchPairs measures acquiring and releasing, each caller a name of its own, and deletes the
// names.
func (a *app) benchPairs(ctx context.Context, st store.Store, callers int, length time.Duration) (r result, err error) {
	m, err := lease.NewManager(st, lease.Options{Clock: a.Clock, Name: "bench"})
	if err != nil {
		return result{}, err
	}
	prefix := benchPrefix + strings.ToLower(rand.Text()[:8]) + "/"
	defer func() {
		err = errors.Join(err, m.Close(), deleteAll(context.WithoutCancel(ctx), st, prefix))
	}()
	return a.measure(ctx, "acquire+release", callers, length, func(ctx context.Context, caller int) error {
		l, err := m.TryAcquire(ctx, fmt.Sprintf("%s%d", prefix, caller))
		if err != nil {
			return err
		}
		return l.Release(ctx)
	})
}

func deleteAll(ctx context.Context, st store.Store, prefix string) error {
	for rec, err := range st.List(ctx, prefix) {
		if err != nil {
			return err
		}
		if err := st.Delete(ctx, rec.Key, rec.Version); err != nil {
			return err
		}
	}
	return nil
}

// interruptWait is how long what is under way may take to end when the user interrupts: only what
// has an outcome can be cleaned up after.
const interruptWait = 10 * time.Second

// measure calls op again and again from callers goroutines, for that long.
func (a *app) measure(ctx context.Context, what string, callers int, length time.Duration, op func(ctx context.Context, caller int) error) (result, error) {
	took := make([][]time.Duration, callers)
	errs := make([]error, callers)
	outlives, end := context.WithCancel(context.WithoutCancel(ctx))
	var wg, patient sync.WaitGroup
	patient.Go(func() {
		select {
		case <-ctx.Done():
			_ = clock.Sleep(outlives, a.Clock, interruptWait) // an error is the end
		case <-outlives.Done():
		}
		end()
	})
	start := a.Clock.Now()
	for i := range callers {
		wg.Go(func() {
			for began := start; began.Sub(start) < length && ctx.Err() == nil; {
				if errs[i] = op(outlives, i); errs[i] != nil {
					return
				}
				now := a.Clock.Now()
				took[i] = append(took[i], now.Sub(began))
				began = now
			}
		})
	}
	wg.Wait()
	elapsed := a.Clock.Now().Sub(start)
	end()
	patient.Wait()
	if ctx.Err() != nil {
		return result{}, context.Cause(ctx)
	}
	if err := errors.Join(errs...); err != nil {
		return result{}, err
	}
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	return result{
		What: what, Callers: callers, PerSec: float64(len(all)) / elapsed.Seconds(),
		P50: milliseconds(all[len(all)/2]), P99: milliseconds(all[len(all)*99/100]),
	}, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// rateOf shows a rate. A store that stalls may do less than one in a second, which is not 0.
func rateOf(perSec float64) string {
	if perSec < 10 {
		return fmt.Sprintf("%.2g", perSec)
	}
	return fmt.Sprintf("%.0f", perSec)
}

func benchColumns(results []result) []output.Column {
	what, callers, rate := output.Column{Title: "WHAT"}, output.Column{Title: "CALLERS"}, output.Column{Title: "PER SECOND"}
	p50, p99 := output.Column{Title: "P50"}, output.Column{Title: "P99"}
	for _, r := range results {
		what.Cells = append(what.Cells, r.What)
		callers.Cells = append(callers.Cells, fmt.Sprint(r.Callers))
		rate.Cells = append(rate.Cells, rateOf(r.PerSec))
		p50.Cells = append(p50.Cells, fmt.Sprintf("%.2f ms", r.P50))
		p99.Cells = append(p99.Cells, fmt.Sprintf("%.2f ms", r.P99))
	}
	return []output.Column{what, callers, rate, p50, p99}
}
