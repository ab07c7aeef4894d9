package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Wait implements [store.Waiter]. A watch reports the change, together with the new record, so
// there is no further round trip between the write and its return.
//
// Beginning costs two round trips: one for the watch, unless the key has one already, and one read.
// It costs nothing if the watch is unbroken since the last Wait, and version is the latest that it
// reported or that was read since it began.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	w, err := s.join(key)
	if err != nil {
		return store.Record{}, err
	}
	defer s.leave(w)
	return w.Wait(ctx, s.watching, version, watcher.Reader{
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
func (s *Store) serve(ctx context.Context, w *watch) {
	for pause := watcher.RetryMin; ; pause = min(2*pause, watcher.RetryMax) {
		for resp := range s.watcher.Watch(ctx, s.prefix+w.key, clientv3.WithCreatedNotify()) {
			if resp.Created && resp.Err() == nil {
				pause = watcher.RetryMin
				w.Again()
			}
			if n := len(resp.Events); n > 0 { // the latest change is enough
				s.tell(w, resp.Events[n-1])
			}
		}
		if ctx.Err() != nil {
			return
		}
		w.Ended()
		if watcher.Pause(ctx, s.watching.Done(), pause) != nil {
			return
		}
	}
}

func (s *Store) tell(w *watch, ev *clientv3.Event) {
	rec, err := store.Record{Key: w.key}, error(nil)
	if ev.Type == clientv3.EventTypePut {
		rec, err = s.record(ev.Kv)
	}
	w.Tell(uint64(ev.Kv.ModRevision), rec, err)
}
