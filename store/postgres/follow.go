package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/notify"
)

// The pauses between two looks at what is waited for, unless there is news: from followMin to
// retryMax while a lock can't be had yet, else followMax.
const (
	followMin = 20 * time.Millisecond
	retryMax  = time.Second
	followMax = 5 * time.Second
)

// follower has the connection that listens hear of the keys that are waited for, see [topics].
type follower struct {
	s    *Store
	ear  notify.Ear
	news chan struct{} // of capacity 1: the crowd's lock may be free

	own    map[int32]*topic    // by number, at most narrow
	others map[string]struct{} // keys beyond these
	// Whose the crowd's lock was at the last look; nobodys when the crowd isn't listened to.
	crowd string
}

// topic is a number that is listened to while it has keys.
type topic struct {
	keys          map[string]struct{}
	heard, locked bool
}

const (
	nobodys = ""
	ours    = "ours"
	theirs  = "theirs"
)

func newFollower(s *Store, ear notify.Ear) *follower {
	return &follower{s: s, ear: ear, news: make(chan struct{}, 1), own: map[int32]*topic{}, others: map[string]struct{}{}}
}

// told passes on a notification. The one of no key says that the crowd's lock is free.
func (f *follower) told(key string) {
	if key != "" {
		f.ear.Changed(key)
		return
	}
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// run follows what is waited for until that fails or ctx is done. It borrows the connection when
// there is something to do.
func (f *follower) run(ctx context.Context) error {
	for pause := followMin; ; {
		look := clock.NewTimer(clock.System(), pause)
		select {
		case <-f.ear.More():
		case <-f.news:
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		settled, err := f.follow(ctx)
		switch {
		case err != nil:
			return err
		case settled:
			pause = followMax
		case pause == followMax:
			pause = followMin
		default:
			pause = min(2*pause, retryMax)
		}
	}
}

// follow looks once. It reports whether nothing is left to do.
func (f *follower) follow(ctx context.Context) (settled bool, err error) {
	f.sort(f.ear.Next())
	// What is another's may be nobody's by now.
	if f.settled() && (f.crowd == ours || len(f.others) == 0) {
		return true, nil
	}
	conn, release := f.s.line.borrow(ctx)
	if conn == nil {
		return false, nil
	}
	defer release()
	return f.attend(ctx, conn)
}

// attend does what is to be done, on the connection that listens. It ends within listenLimit, which
// a connection that is dead doesn't survive.
func (f *follower) attend(ctx context.Context, conn *pgx.Conn) (settled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, listenLimit)
	defer cancel()
	if err := f.listen(ctx, conn); err != nil {
		return false, err
	}
	if err := f.lock(ctx, conn); err != nil {
		return false, err
	}
	if err := f.join(ctx, conn); err != nil {
		return false, err
	}
	return f.settled(), nil
}

// sort puts keys where they belong.
func (f *follower) sort(begin, end []string) {
	for _, key := range end {
		delete(f.others, key)
		if t := f.own[number(key)]; t != nil {
			delete(t.keys, key)
		}
	}
	for _, key := range begin {
		t := f.own[number(key)]
		switch {
		case t != nil:
			if t.locked {
				f.ear.Covers(key)
			}
		case len(f.own) < narrow:
			t = &topic{keys: map[string]struct{}{}}
			f.own[number(key)] = t
		default:
			f.others[key] = struct{}{}
			if f.crowd != nobodys {
				f.ear.Covers(key)
			}
			continue
		}
		t.keys[key] = struct{}{}
	}
}

func (f *follower) settled() bool {
	for _, t := range f.own {
		if !t.locked || len(t.keys) == 0 {
			return false
		}
	}
	return (len(f.others) > 0) == (f.crowd != nobodys)
}

// listen begins to listen, and ends it, for numbers. Who is still heard after its lock was given
// back hears others' notifications for a moment.
func (f *follower) listen(ctx context.Context, conn *pgx.Conn) error {
	var sql strings.Builder
	var over, locked []int32
	for n, t := range f.own {
		switch {
		case len(t.keys) == 0:
			over = append(over, n)
			if t.locked {
				locked = append(locked, n)
			}
			if t.heard {
				sql.WriteString("UNLISTEN " + f.s.topics.of(n) + ";")
			}
		case !t.heard:
			sql.WriteString("LISTEN " + f.s.topics.of(n) + ";")
		}
	}
	if len(locked) > 0 {
		if _, err := conn.Exec(ctx, unlockSQL, f.s.mode(), f.s.topics.class, locked); err != nil {
			return err
		}
	}
	if sql.Len() > 0 {
		if _, err := conn.Exec(ctx, sql.String(), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	for _, n := range over {
		delete(f.own, n)
	}
	for _, t := range f.own {
		t.heard = true
	}
	return nil
}

// lock takes the locks that it can get. What was written before shows now, and what is written from
// now on is told.
func (f *follower) lock(ctx context.Context, conn *pgx.Conn) error {
	var want, got []int32
	for n, t := range f.own {
		if !t.locked {
			want = append(want, n)
		}
	}
	if len(want) == 0 {
		return nil
	}
	err := linkOf(conn).send(ctx, f.s.mode(), question{sql: lockSQL, args: []any{f.s.topics.class, want}, scan: func(rows pgx.Rows) error {
		var n int32
		err := rows.Scan(&n)
		got = append(got, n)
		return err
	}})
	if err != nil {
		return err
	}
	for _, n := range got {
		f.own[n].locked = true
		for key := range f.own[n].keys {
			f.ear.Covers(key)
		}
	}
	return nil
}

// join has the crowd's channel heard and its lock held, by whomever, while there are keys beyond
// one's own; else it gives them back.
func (f *follower) join(ctx context.Context, conn *pgx.Conn) error {
	was := f.crowd
	switch {
	case len(f.others) == 0 && was == nobodys, was == ours && len(f.others) > 0:
		return nil
	case len(f.others) == 0:
		return f.disperse(ctx, conn)
	}
	if was == nobodys {
		if _, err := conn.Exec(ctx, "LISTEN "+f.s.topics.crowded(), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	f.s.crowded.Store(true)                                          // before it has the lock
	args := []any{f.s.topics.crowd, int64(uint32(f.s.topics.crowd))} //nolint:gosec // the same bits
	err := linkOf(conn).send(ctx, f.s.mode(), question{sql: crowdSQL, args: args, scan: func(rows pgx.Rows) error { return rows.Scan(&f.crowd) }})
	switch {
	case sqlstate(err) == codeLockTimeout:
		// By a commit that takes long, or by another who was faster.
		f.crowd = nobodys
		return nil
	case err != nil:
		return err
	case f.crowd != was: // nobody told what was written before
		for key := range f.others {
			f.ear.Covers(key)
		}
	}
	return nil
}

// disperse gives the crowd's lock back, and has another one take it.
func (f *follower) disperse(ctx context.Context, conn *pgx.Conn) error {
	if f.crowd == ours {
		if _, err := conn.Exec(ctx, disperseSQL, f.s.mode(), f.s.topics.crowd, f.s.topics.crowded()); err != nil {
			return err
		}
	}
	f.crowd = nobodys
	f.s.crowded.Store(false)
	_, err := conn.Exec(ctx, "UNLISTEN "+f.s.topics.crowded(), pgx.QueryExecModeSimpleProtocol)
	return err
}

// end is for the end of the connection: others in the crowd learn at once that its lock is free.
func (f *follower) end(ctx context.Context, conn *pgx.Conn) {
	if f.crowd != ours || conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = f.disperse(ctx, conn) // else they find it at their next look
}
