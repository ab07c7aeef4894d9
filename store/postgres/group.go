package postgres

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
)

// write is a change of one record, and one attempt at it.
type write struct {
	change
	statement changeStatement
	args      []any
	body      string // of the record that it makes of another one, see joins

	done    bool
	row     row  // what was there instead
	unknown bool // it may have been done, in spite of err
	err     error
}

// Key and Size have writes sent in groups.
func (w *write) Key() string { return w.key }
func (w *write) Size() int   { return len(w.body) + 2*len(w.key) }

// joins reports whether w may be sent together with others: whether it changes a record that is
// there. A statement that inserts may have to wait for somebody else's transaction, and one that
// waits while it has other rows locked may wait for ever.
func (w *write) joins() bool { return w.version != "" && w.body != "" && asText(w.version) != nil }

// carryOut has w done, by itself or together with others that are asked for at the same time.
func (s *Store) carryOut(ctx context.Context, w *write) (unknown bool, err error) {
	if !w.joins() {
		s.alone(ctx, w)
		return w.unknown, w.err
	}
	if sent, err := s.writes.Do(ctx, w, func() { s.alone(ctx, w) }); err != nil {
		return sent, err // w is the group's
	}
	return w.unknown, w.err
}

// alone has one write done by a statement of its own.
func (s *Store) alone(ctx context.Context, w *write) { s.send(ctx, w, w.statement.plain, false) }

// send has one write done by that statement. With more, its rows go on with these columns.
func (s *Store) send(ctx context.Context, w *write, statement string, seldom bool, more ...any) {
	var set, told *string
	into := append([]any{&w.done, &w.row.version, &w.row.record, &w.row.age, &set, &told}, more...)
	w.unknown, w.err = s.ask(ctx, question{
		sql: statement, args: w.args, change: w.change, seldom: seldom,
		scan:     func(rows pgx.Rows) error { return rows.Scan(into...) },
		answered: func() { s.landed(w) },
	})
}

// landed is called when w was answered, before the connection is given back.
func (s *Store) landed(w *write) {
	if w.done {
		s.doubts.Landed(w.kept)
	}
}

// How many writes are sent in one statement. It costs the server about as much as four that change
// one record, and 4 µs for each record; and each takes a lock that says whether anybody waits, see
// [narrow].
const (
	fewestTogether = 4
	mostTogether   = narrow
)

// together sends writes of different keys in as few statements as they fit in, at the same time. It
// returns when all are answered.
func (s *Store) together(ctx context.Context, group []*write) {
	var others sync.WaitGroup
	defer others.Wait()
	parts := (len(group) + mostTogether - 1) / mostTogether
	for ; parts > 1; parts-- {
		n := len(group) / parts
		part := group[:n]
		group = group[n:]
		others.Go(func() { s.part(ctx, part) })
	}
	s.part(ctx, group)
}

// part sends writes in one statement, unless they are few, and those that it didn't do each in one
// of its own: that waits for who has the record locked, and shows what is there instead.
func (s *Store) part(ctx context.Context, group []*write) {
	if len(group) >= fewestTogether {
		if unknown, err := s.change(ctx, group); err != nil && unknown {
			for _, w := range group {
				w.unknown, w.err = true, err
			}
			return
		}
	}
	var each sync.WaitGroup
	for _, w := range group {
		if !w.done {
			each.Go(func() { s.alone(ctx, w) })
		}
	}
	each.Wait()
}

// change sends writes in one statement. After an error none is done, unless that is unknown.
func (s *Store) change(ctx context.Context, group []*write) (unknown bool, err error) {
	var keys, versions, next, bodies, channels []string
	var numbers []int32
	for _, w := range group {
		n := number(w.key)
		keys, versions, next, bodies = append(keys, w.key), append(versions, w.version), append(next, w.kept.Version), append(bodies, w.body)
		numbers, channels = append(numbers, n), append(channels, s.topics.of(n))
	}
	unknown, err = s.ask(ctx, question{
		sql: s.sql.together, args: []any{keys, versions, next, bodies, s.topics.channel, s.topics.class, s.topics.crowd, numbers, channels},
		scan: func(rows pgx.Rows) error {
			var n int
			var done bool
			var set, told *string
			err := rows.Scan(&n, &done, &set, &told)
			if err == nil {
				group[n-1].done = done
			}
			return err
		},
		answered: func() {
			for _, w := range group {
				s.landed(w)
			}
		},
	})
	if err != nil { // the rows came before it
		for _, w := range group {
			w.done = false
		}
	}
	return unknown, err
}
