package admiral_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// published starts an instance of the algorithm as it was published: the comparison. It is kinder than the original in one
// thing: its reads are strong.
func (w *world) published(pod string) *instance {
	p := &publishedChecker{pod: pod, wait: int64(wait.Seconds()), threshold: threshold}
	return w.launch(pod, func(i *instance) {
		i.may = func() (string, fence.Token, bool) { return pod, 0, p.active.Load() }
	}, p.run)
}

type publishedChecker struct {
	pod             string
	wait, threshold int64
	active          atomic.Bool
}

func (p *publishedChecker) run(ctx context.Context, i *instance) {
	for ctx.Err() == nil {
		p.tick(ctx, i)
		_ = clock.Sleep(ctx, i.clk, wait)
	}
}

// tcpGivesUp is how long a request hangs when the network swallows it: the published code sets no time limit.
const tcpGivesUp = 15 * time.Minute

// tick is the published tick, step by step, on this machine's wall clock.
func (p *publishedChecker) tick(ctx context.Context, i *instance) {
	limited, cancel := clock.WithTimeout(ctx, i.clk, tcpGivesUp)
	defer cancel()
	now := i.clk.Wall().Unix()
	rec, err := store.Load(limited, i.net, leaseName)
	updated, _ := strconv.ParseInt(rec.Info["updatedTime"], 10, 64)
	switch {
	case err != nil:
		p.active.Store(false)
	case rec.Owner == "":
		p.take(limited, i, rec, now)
	case rec.Owner == admiral.SkipOwner:
		p.active.Store(false)
	case rec.Owner == p.pod:
		p.active.Store(true)
		p.take(limited, i, rec, now)
	case updated < now-p.wait*p.threshold:
		p.take(limited, i, rec, now)
	default:
		p.active.Store(false)
	}
}

// take writes without a condition, and doesn't look at what comes of it: whatever is there is replaced.
func (p *publishedChecker) take(ctx context.Context, i *instance, rec store.Record, now int64) {
	for {
		rec.Owner, rec.Token, rec.TTL = p.pod, 1, ttl
		rec.Info = map[string]string{"updatedTime": strconv.FormatInt(now, 10)}
		_, err := i.net.Put(ctx, rec)
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) {
			return
		}
		rec = conflict.Current
	}
}
