package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/server"
)

const (
	lasts = math.MaxInt64 // the end of a span without one

	// A page is made of so many rows at most, whether they are among those that are asked for or
	// not: a request can't keep the writer waiting for long.
	scanned = 20_000

	sweepEvery = time.Minute
	sweepPiece = 5000 // rows that one commit deletes
	slack      = 24 * time.Hour

	namesKept = 50_000 // ids of names in memory
)

// kinds are the kinds of spans by their numbers in the file: never another order.
var kinds = []server.SpanKind{
	server.SpanTerm, server.SpanShare, server.SpanExpired, server.SpanBroken, server.SpanHanded, server.SpanPaused, server.SpanWaiting,
}

// Note implements [server.Journal].
func (j *Journal) Note(ctx context.Context, spans []server.Span) error {
	return j.use(ctx, func(db *sql.DB) error {
		if len(spans) > 0 {
			if err := j.within(ctx, db, func(tx *sql.Tx) error { return j.put(ctx, tx, spans) }); err != nil {
				return err
			}
		}
		return j.sweep(ctx, db)
	})
}

// within calls do in a transaction.
func (j *Journal) within(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	rows := j.rows
	if err = do(tx); err == nil {
		err = tx.Commit()
	} else {
		err = errors.Join(err, tx.Rollback())
	}
	if err != nil {
		j.rows = rows
		clear(j.names) // those that were made are not
	}
	return err
}

func (j *Journal) put(ctx context.Context, tx *sql.Tx, spans []server.Span) error {
	insert, err := tx.PrepareContext(ctx, `INSERT INTO spans (name, kind, token, mark, began, ends, holder, ended, note, what, session, zone)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`)
	if err != nil {
		return err
	}
	defer func() { _ = insert.Close() }()
	update, err := tx.PrepareContext(ctx, `UPDATE spans SET ends = ?1, ended = ?2, note = ?3,
		what = coalesce(nullif(?4, ''), what), session = coalesce(nullif(?5, ''), session), zone = coalesce(nullif(?6, ''), zone)
		WHERE name = ?7 AND kind = ?8 AND token = ?9 AND mark = ?10 AND (ends <> ?1 OR ended <> ?2 OR ?4 NOT IN ('', what) OR ?5 NOT IN ('', session) OR ?6 NOT IN ('', zone))`)
	if err != nil {
		return err
	}
	defer func() { _ = update.Close() }()
	now := j.opts.Clock.Wall()
	for _, s := range spans {
		kind, mark := slices.Index(kinds, s.Kind), milli(s.From, 0)
		if kind < 0 {
			return fmt.Errorf("span of kind %q: want one of %q", s.Kind, kinds)
		}
		began, ends := mark, milli(s.Until, lasts)
		if s.Kind == server.SpanTerm || s.Kind == server.SpanShare {
			mark = 0
		}
		// By a clock that is wrong: it would be kept for as long.
		if ends != lasts && ends > now.Add(slack).UnixMilli() {
			ends = now.UnixMilli()
		}
		name, err := j.name(ctx, tx, s.Name)
		if err != nil {
			return err
		}
		own := short(s.Holder, s.Session)
		if ends >= now.Add(-j.opts.Keep).UnixMilli() { // else the sweep would take it
			done, err := insert.ExecContext(ctx, name, kind, int64(s.Token), mark, began, ends, s.Holder, s.Ended, s.Note, string(s.NameKind), own, s.Zone)
			if err != nil {
				return err
			}
			if n, err := done.RowsAffected(); err == nil && n > 0 {
				j.rows++
				continue
			}
		}
		if _, err = update.ExecContext(ctx, ends, s.Ended, s.Note, string(s.NameKind), own, s.Zone, name, kind, int64(s.Token), mark); err != nil {
			return err
		}
	}
	return nil
}

// milli is a time in the file: nothing where none is known.
func milli(t time.Time, none int64) int64 {
	if t.IsZero() {
		return none
	}
	return t.UnixMilli()
}

func timeOf(ms int64) time.Time {
	if ms == 0 || ms == lasts {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// short is a session's id in the file, beside its holder: most begin with that of the holder.
func short(holder, session string) string {
	if own, ok := strings.CutPrefix(session, keyspace.SessionPrefix+holder+"/"); ok && own != "" {
		return own
	}
	return session
}

// long returns what short was made of. The id of a session begins with a dot, and no rest of one
// does.
func long(holder, own string) string {
	if own == "" || strings.HasPrefix(own, ".") {
		return own
	}
	return keyspace.SessionPrefix + holder + "/" + own
}

// name returns the id of a name, which it gets when it has none.
func (j *Journal) name(ctx context.Context, tx *sql.Tx, name string) (id int64, err error) {
	if id, ok := j.names[name]; ok {
		return id, nil
	}
	if _, err = tx.ExecContext(ctx, "INSERT OR IGNORE INTO names (name) VALUES (?)", name); err != nil {
		return 0, err
	}
	if err = tx.QueryRowContext(ctx, "SELECT id FROM names WHERE name = ?", name).Scan(&id); err != nil {
		return 0, err
	}
	if len(j.names) >= namesKept {
		clear(j.names)
	}
	j.names[name] = id
	return id, nil
}

// sweep deletes what is too old or too much, a piece at a time.
func (j *Journal) sweep(ctx context.Context, db *sql.DB) error {
	now := j.opts.Clock.Wall()
	over := j.rows - j.opts.Rows
	if over <= 0 && now.Sub(j.swept) < sweepEvery && !now.Before(j.swept) {
		return nil
	}
	var last sql.NullInt64
	swept := 0
	err := j.within(ctx, db, func(tx *sql.Tx) error {
		drop := func(where string, args ...any) error {
			rows, err := tx.QueryContext(ctx, "DELETE FROM spans WHERE id IN (SELECT id FROM spans WHERE "+where+") RETURNING ends", args...)
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				var ends int64
				if err := rows.Scan(&ends); err != nil {
					return err
				}
				if swept++; !last.Valid || ends > last.Int64 {
					last = sql.NullInt64{Int64: ends, Valid: true}
				}
			}
			return rows.Err()
		}
		err := drop("ends < ? ORDER BY ends LIMIT ?", now.Add(-j.opts.Keep).UnixMilli(), sweepPiece)
		if more := min(over-swept, sweepPiece); err == nil && more > 0 {
			err = drop("ends < ? ORDER BY ends LIMIT ?", int64(lasts), more)
		}
		if err != nil {
			return err
		}
		j.rows -= swept
		if swept == 0 {
			_, err = tx.ExecContext(ctx, "DELETE FROM names WHERE id IN (SELECT id FROM names AS n WHERE NOT EXISTS (SELECT 1 FROM spans WHERE name = n.id) LIMIT ?)", sweepPiece)
			clear(j.names)
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE meta SET from_ms = max(from_ms, ?)", last.Int64)
		return err
	})
	if err != nil {
		return err
	}
	if last.Valid && last.Int64 > j.from.UnixMilli() {
		j.from = timeOf(last.Int64)
	}
	if swept < sweepPiece {
		j.swept = now
	}
	return nil
}

const columns = "s.id, n.name, s.kind, s.token, s.began, s.ends, s.holder, s.ended, s.note, s.what, s.session, s.zone FROM spans AS s JOIN names AS n ON n.id = s.name"

// row is a span with what its place among others is told by.
type row struct {
	server.Span
	id, ends int64
}

func scan(rows *sql.Rows) (r row, err error) {
	var kind int
	var token, began int64
	var own string
	if err = rows.Scan(&r.id, &r.Name, &kind, &token, &began, &r.ends, &r.Holder, &r.Ended, &r.Note, &r.NameKind, &own, &r.Zone); err != nil {
		return r, err
	}
	r.Session = long(r.Holder, own)
	if kind < 0 || kind >= len(kinds) {
		return r, fmt.Errorf("row %d: kind %d: want 0 to %d", r.id, kind, len(kinds)-1)
	}
	r.Kind, r.Token, r.From, r.Until = kinds[kind], fence.Token(token), timeOf(began), timeOf(r.ends) //nolint:gosec // tokens are below 2^53
	return r, nil
}

// each calls do with the rows of a query, until it returns false.
func each(ctx context.Context, db *sql.DB, do func(row) bool, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return err
		}
		if !do(r) {
			break
		}
	}
	return rows.Err()
}

// Standing implements [server.Journal].
func (j *Journal) Standing(ctx context.Context) (spans []server.Span, err error) {
	err = j.use(ctx, func(db *sql.DB) error {
		spans = nil
		return each(ctx, db, func(r row) bool {
			spans = append(spans, r.Span)
			return true
		}, "SELECT "+columns+" WHERE s.ends = ?", int64(lasts))
	})
	return spans, err
}

// Find implements [server.Journal].
func (j *Journal) Find(ctx context.Context, q server.SpanQuery) (page server.SpanPage, err error) {
	ends, id := int64(lasts), int64(math.MaxInt64)
	if q.After != "" {
		if ends, id, err = place(q.After); err != nil {
			return page, err
		}
	}
	where, args := "s.ends >= ? AND (s.ends, s.id) < (?, ?)", []any{milli(q.Since, math.MinInt64), ends, id}
	if q.Name != "" {
		where += " AND s.name = (SELECT id FROM names WHERE name = ?)"
		args = append(args, q.Name)
	}
	until := milli(q.Until, lasts)
	err = j.use(ctx, func(db *sql.DB) error {
		page = server.SpanPage{From: j.from}
		var last row
		seen, more := 0, false
		err := each(ctx, db, func(r row) bool {
			if len(page.Spans) >= q.Limit || seen >= scanned {
				more = true
				return false
			}
			seen++
			if last = r; r.From.UnixMilli() <= until && fits(q, r.Span) {
				page.Spans = append(page.Spans, r.Span)
			}
			return true
		}, "SELECT "+columns+" WHERE "+where+" ORDER BY s.ends DESC, s.id DESC LIMIT ?", append(args, scanned+1)...)
		if more {
			page.Next = strconv.FormatInt(last.ends, 36) + "." + strconv.FormatInt(last.id, 36)
		}
		return err
	})
	return page, err
}

func fits(q server.SpanQuery, s server.Span) bool {
	return strings.HasPrefix(s.Name, q.Prefix) && (q.Holder == "" || s.Holder == q.Holder || strings.HasPrefix(s.Holder, q.Holder+"/"))
}

// place reads what [Journal.Find] said is next.
func place(after string) (ends, id int64, err error) {
	a, b, _ := strings.Cut(after, ".")
	if ends, err = strconv.ParseInt(a, 36, 64); err == nil {
		id, err = strconv.ParseInt(b, 36, 64)
	}
	if err != nil {
		return 0, 0, &server.PlaceError{After: after}
	}
	return ends, id, nil
}
