package zookeeper

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// write is a change of one record.
type write struct {
	key     string
	version string // that is demanded; "" is that of a key that isn't stored
	ops     []any  // of a multi
	size    int    // of the record

	err error // why it wasn't done
}

// Key and Size have writes sent in groups.
func (w *write) Key() string { return w.key }
func (w *write) Size() int   { return w.size + 4*(len(w.key)+birthLen) }

// write has w done, by itself or together with others that are asked for at the same time.
func (s *Store) write(ctx context.Context, w *write) error {
	// Without a session nothing is sent, and it is known of no write that waits for one with
	// others.
	if err := s.session(ctx); err != nil {
		return s.outcome(w.key, err)
	}
	sent, err := s.writes.Do(ctx, w, func() { s.alone(ctx, w) })
	switch {
	case err == nil:
		return w.err
	case sent:
		return driver.Unknown(w.key, err)
	}
	return err
}

// mostTogether is how many bytes of writes go in one multi: about what the largest record takes
// alone. So a server whose jute.maxbuffer lets all records through lets all multis through.
const mostTogether = store.MaxRecord

// together sends writes of different keys in as few multis as they fit in, at the same time. It
// returns when all are answered.
func (s *Store) together(ctx context.Context, group []*write) {
	var others sync.WaitGroup
	defer others.Wait()
	first, bytes := 0, 0
	for i, w := range group {
		if bytes += w.Size(); bytes > mostTogether && i > first {
			part := group[first:i]
			others.Go(func() { s.multi(ctx, part) })
			first, bytes = i, w.Size()
		}
	}
	s.multi(ctx, group[first:])
}

// multi has the server do all of the writes or none. When it refuses that, each is sent by itself:
// one of them is in conflict, or not permitted, and the others are not.
func (s *Store) multi(ctx context.Context, group []*write) {
	if len(group) == 1 {
		s.alone(ctx, group[0])
		return
	}
	var ops []any
	for _, w := range group {
		ops = append(ops, w.ops...)
	}
	err := s.ask(ctx, ops)
	if err == nil {
		return
	}
	if !answered(err) {
		for _, w := range group {
			w.err = s.outcome(w.key, err)
		}
		return
	}
	var each sync.WaitGroup
	for _, w := range group {
		each.Go(func() { s.alone(ctx, w) })
	}
	each.Wait()
}

func (s *Store) ask(ctx context.Context, ops []any) error {
	_, err := call(ctx, s, func(conn *zk.Conn) ([]zk.MultiResponse, error) { return conn.Multi(ops...) })
	return err
}

// alone sends one write.
func (s *Store) alone(ctx context.Context, w *write) { w.err = s.send(ctx, w) }

func (s *Store) send(ctx context.Context, w *write) error {
	for {
		session := s.conn.SessionID()
		err := s.ask(ctx, w.ops)
		switch {
		case err == nil:
			return nil
		case w.version == "" && errors.Is(err, zk.ErrNoNode):
			if err := s.makeRoot(ctx); err != nil {
				return err
			}
			continue
		case !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrBadVersion):
			return s.outcome(w.key, err)
		}
		err = s.explain(ctx, w.key, w.version, &session)
		if w.version == "" && errors.Is(err, store.ErrNotFound) {
			continue // what was in the way is gone
		}
		return err
	}
}
