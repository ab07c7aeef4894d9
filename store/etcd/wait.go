package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
)

// A watch outlives its last Wait, since it costs two round trips to begin another one.
const (
	linger  = 10 * time.Second
	maxIdle = 1024
)

// Wait implements [store.Waiter]. A watch reports the change, together with the new record, so
// there is no further round trip between the write and its return.
//
// Beginning costs two round trips: one for the watch, unless the key has one already, and one read.
// It costs nothing if the watch is unbroken since the last Wait, and version is the latest that it
// reported or that was read since it began.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	return watcher.Wait(ctx, s.watches, key, version, watcher.Reader{
		Read:    func(ctx context.Context, key string, _ uint64) (store.Record, uint64, error) { return s.load(ctx, key) },
		Passing: func(err error) bool { return code(err) == codes.Unavailable },

		Linearizable: true,
	})
}

// serve keeps up the watch until ctx ends.
//
// It always begins at the present, never at the revision of a read: etcd tells a watch that begins
// in the past, by one revision of any key, nothing before its next round for such watches, which
// comes every 100 ms. The client resumes after a lost connection by itself, without a gap. The
// watch ends when the revision to resume from has been compacted, and when the member has lost its
// leader; then it begins at the present again, and whoever waits reads.
func (s *Store) serve(ctx context.Context, key string, w *watcher.Watch) {
	for pause := watcher.RetryMin; ; pause = min(2*pause, watcher.RetryMax) {
		for resp := range s.watcher.Watch(ctx, s.prefix+key, clientv3.WithCreatedNotify()) {
			if resp.Created && resp.Err() == nil {
				pause = watcher.RetryMin
				w.Again()
			}
			if n := len(resp.Events); n > 0 { // the latest change is enough
				s.tell(key, w, resp.Events[n-1])
			}
		}
		if ctx.Err() != nil {
			return
		}
		w.Ended()
		if watcher.Pause(ctx, s.watches.Life().Done(), pause) != nil {
			return
		}
	}
}

func (s *Store) tell(key string, w *watcher.Watch, ev *clientv3.Event) {
	rec, err := store.Record{Key: key}, error(nil)
	if ev.Type == clientv3.EventTypePut {
		rec, err = s.record(ev.Kv)
	}
	w.Tell(uint64(ev.Kv.ModRevision), rec, err)
}

// show tells the watch for key, if there is one, that the store shows a caller the record as of
// that revision: see [watcher.Watch.Show].
func (s *Store) show(key string, revision int64) {
	if w, ok := s.watches.Get(key); ok {
		w.Show(uint64(revision))
	}
}
