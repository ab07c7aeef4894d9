package sweep

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// sane is the time before which no clock that is right made a token.
var sane = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// judgeFree decides about a name that nobody holds.
func (s *sweeper) judgeFree(rec store.Record) {
	token := time.UnixMilli(int64(rec.Token))
	freed := token
	if len(rec.Past) > 0 {
		freed = rec.Past[0].Until
	}
	since := "free since " + freed.UTC().Format(time.DateOnly)
	switch {
	case !freed.Before(s.cutoff()):
	case strings.HasPrefix(rec.Key, pools.KeyPrefix), rec.Kind == store.KindPool:
	case len(rec.Data) > 0:
		s.tell(rec.Key, Kept, since+", but it carries data")
	case !s.mayForget(rec):
		s.tell(rec.Key, Kept, fmt.Sprintf("%s, but its token is %d: a clock that is right may give a lower one next", since, rec.Token))
	case token.Before(sane):
		s.tell(rec.Key, Kept, fmt.Sprintf("%s, but its token is %d, which is no time of a clock that is right: the next one might be lower", since, rec.Token))
	default:
		s.stale = append(s.stale, stale{rec.Key, rec.Version, since})
	}
}

// mayForget reports whether whoever takes the name next gets a higher token, though it isn't known
// any more.
func (s *sweeper) mayForget(rec store.Record) bool {
	return time.UnixMilli(int64(rec.Token)).Before(s.cutoff())
}

// forgetNames deletes the names that have been free for long enough.
func (s *sweeper) forgetNames(ctx context.Context) {
	for _, r := range s.stale {
		if ctx.Err() != nil {
			return
		}
		s.delete(ctx, r)
	}
}

// delete deletes a record at the version that was judged.
func (s *sweeper) delete(ctx context.Context, r stale) {
	if s.opts.DryRun || s.did(ctx, r.key, s.st.Delete(ctx, r.key, r.version)) {
		s.tell(r.key, Deleted, r.why)
	}
}

// free ends the hold that rec tells of. It returns the record as it is then, and whether that was,
// or would be, carried out.
func (s *sweeper) free(ctx context.Context, rec store.Record, why string) (store.Record, bool) {
	if s.opts.DryRun {
		return rec, true
	}
	freed, err := s.st.Put(ctx, protocol.Freed(rec, why, s.clk.Wall(), rand.Text()))
	return freed, s.did(ctx, rec.Key, err)
}
