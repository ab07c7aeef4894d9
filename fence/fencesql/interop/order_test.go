package interop

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
)

func seq(holder string, token fence.Token) fence.Sequencer {
	return fence.Sequencer{Name: "n", Holder: holder, Token: token}
}

// attempt is a transaction that is admitted in the background, as it may have to wait.
type attempt struct {
	tx   *sql.Tx
	pid  int // of its PostgreSQL backend
	done chan error
}

func (l *ledger) attempt(ctx context.Context, t testing.TB, s fence.Sequencer) *attempt {
	t.Helper()
	a := &attempt{tx: l.begin(t), done: make(chan error, 1)}
	if err := a.tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&a.pid); err != nil {
		t.Fatal(err)
	}
	go func() { a.done <- l.table.Admit(ctx, a.tx, s) }()
	return a
}

// waits returns when the attempt waits for a lock.
func (l *ledger) waits(t testing.TB, a *attempt) {
	t.Helper()
	for {
		var event sql.NullString
		err := l.QueryRowContext(t.Context(), "SELECT wait_event_type FROM pg_stat_activity WHERE pid = $1", a.pid).Scan(&event)
		switch {
		case err != nil:
			t.Fatal(err)
		case event.String == "Lock":
			return
		}
		select {
		case err := <-a.done:
			t.Fatalf("it didn't wait: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
}

// admitted begins a transaction that is admitted at once.
func (l *ledger) admitted(t testing.TB, s fence.Sequencer) *sql.Tx {
	t.Helper()
	tx := l.begin(t)
	if err := l.table.Admit(t.Context(), tx, s); err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	return tx
}

func (l *ledger) commit(t testing.TB, tx *sql.Tx, s fence.Sequencer) {
	t.Helper()
	if err := errors.Join(l.add(t.Context(), tx, s), tx.Commit()); err != nil {
		t.Fatal(err)
	}
}

func (l *ledger) wrote(t testing.TB, want ...fence.Token) {
	t.Helper()
	got := l.written(t)
	if len(got) != len(want) {
		t.Fatalf("written under %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("written under %v, want %v", got, want)
		}
	}
}

// postgresLedger is one whose name n was written under token 5 of a.
func postgresLedger(t testing.TB, isolation sql.IsolationLevel) *ledger {
	t.Helper()
	l := newLedger(t, postgres(t, isolation, ""))
	if err := l.write(t.Context(), seq("a", 5)); err != nil {
		t.Fatal(err)
	}
	return l
}

// A transaction of a later term waits for all those of the earlier one, and reads what they have written.
func TestLaterTermWaits(t *testing.T) {
	l := postgresLedger(t, sql.LevelReadCommitted)
	one, two := l.admitted(t, seq("a", 5)), l.admitted(t, seq("a", 5)) // side by side
	later := l.attempt(t.Context(), t, seq("b", 6))
	l.waits(t, later)
	l.commit(t, one, seq("a", 5))
	l.waits(t, later)
	l.commit(t, two, seq("a", 5))
	if err := <-later.done; err != nil {
		t.Fatal(err)
	}
	var n int
	if err := later.tx.QueryRowContext(t.Context(), "SELECT count(*) FROM "+l.lines).Scan(&n); err != nil || n != 3 {
		t.Errorf("the later term reads %d lines of the earlier, %v", n, err)
	}
	l.commit(t, later.tx, seq("b", 6))
	if err := l.write(t.Context(), seq("a", 5)); !errors.Is(err, fence.ErrStale) {
		t.Errorf("after the later term: %v", err)
	}
	l.wrote(t, 5, 5, 5, 6)
}

// A transaction of the earlier term that comes while the later one is under way waits for what becomes of it.
func TestEarlierTermWaits(t *testing.T) {
	for _, commits := range []bool{true, false} {
		l := postgresLedger(t, sql.LevelReadCommitted)
		later := l.admitted(t, seq("b", 6))
		earlier := l.attempt(t.Context(), t, seq("a", 5))
		l.waits(t, earlier)
		if commits {
			l.commit(t, later, seq("b", 6))
			var stale *fence.StaleError
			want := fence.StaleError{Name: "n", Got: 5, Current: 6, Holder: "b"}
			if err := <-earlier.done; !errors.As(err, &stale) || *stale != want {
				t.Errorf("%v, want %+v", err, want)
			}
			continue
		}
		if err := later.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-earlier.done; err != nil {
			t.Errorf("the later term was rolled back: %v", err)
		}
		l.commit(t, earlier.tx, seq("a", 5))
		l.wrote(t, 5, 5)
	}
}

// Several first transactions of a new term wait for one another, and don't deadlock.
func TestFirstTransactionsOfATerm(t *testing.T) {
	l := postgresLedger(t, sql.LevelReadCommitted)
	old := l.admitted(t, seq("a", 5))
	var burst []*attempt
	for range 4 {
		burst = append(burst, l.attempt(t.Context(), t, seq("b", 6)))
	}
	other := l.attempt(t.Context(), t, seq("c", 6)) // which no lock service would allow
	for _, a := range append(burst, other) {
		l.waits(t, a)
	}
	l.commit(t, old, seq("a", 5))
	type outcome struct {
		holder string
		err    error
	}
	ended := make(chan outcome)
	end := func(a *attempt, holder string) {
		err := <-a.done
		if err == nil {
			err = a.tx.Commit()
		} else {
			_ = a.tx.Rollback()
		}
		ended <- outcome{holder, err}
	}
	for _, a := range burst {
		go end(a, "b")
	}
	go end(other, "c")
	admitted := map[string]int{}
	for range len(burst) + 1 {
		if o := <-ended; o.err == nil {
			admitted[o.holder]++
		} else if !errors.Is(o.err, fence.ErrStale) {
			t.Errorf("%s: %v", o.holder, o.err)
		}
	}
	if n := len(burst); len(admitted) != 1 || admitted["b"] != n && admitted["c"] != 1 {
		t.Errorf("admitted: %v", admitted)
	}
}

// A transaction whose view is older than the term's beginning fails, to be tried again, and is then refused.
func TestOldSnapshot(t *testing.T) {
	for _, isolation := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		for what, late := range map[string]fence.Sequencer{"known token": seq("a", 5), "name that wasn't there": {Name: "new", Holder: "a", Token: 5}} {
			l := postgresLedger(t, isolation)
			old := l.begin(t)
			if _, err := old.ExecContext(t.Context(), "SELECT count(*) FROM "+l.lines); err != nil {
				t.Fatal(err)
			}
			if err := l.write(t.Context(), fence.Sequencer{Name: late.Name, Holder: "b", Token: 6}); err != nil {
				t.Fatal(err)
			}
			if err := l.table.Admit(t.Context(), old, late); !again(err) {
				t.Errorf("%v, %s: %v, want SQLSTATE 40001", isolation, what, err)
			}
			_ = old.Rollback()
			if err := l.write(t.Context(), late); !errors.Is(err, fence.ErrStale) {
				t.Errorf("%v, %s: %v", isolation, what, err)
			}
		}
	}
}

// At SERIALIZABLE, a later term doesn't act on what it read before the earlier one's last write.
func TestSerializableReads(t *testing.T) {
	l := postgresLedger(t, sql.LevelSerializable)
	old := l.admitted(t, seq("a", 5))
	if err := l.add(t.Context(), old, seq("a", 5)); err != nil {
		t.Fatal(err)
	}
	later := l.attempt(t.Context(), t, seq("b", 6))
	l.waits(t, later)
	if err := old.Commit(); err != nil {
		t.Fatal(err)
	}
	err := <-later.done
	var n int
	if err == nil {
		err = later.tx.QueryRowContext(t.Context(), "SELECT count(*) FROM "+l.lines).Scan(&n)
	}
	if err == nil {
		err = l.add(t.Context(), later.tx, seq("b", 6))
	}
	if err == nil {
		err = later.tx.Commit()
	}
	if !again(err) && (err != nil || n != 2) {
		t.Errorf("it saw %d lines, and then: %v", n, err)
	}
}

// What is admitted and not committed was never there.
func TestRolledBack(t *testing.T) {
	for kind, open := range kinds {
		t.Run(kind, func(t *testing.T) {
			l := newLedger(t, open(t))
			if err := l.admitted(t, seq("b", 6)).Rollback(); err != nil {
				t.Fatal(err)
			}
			if err := l.write(t.Context(), seq("a", 5)); err != nil {
				t.Error(err)
			}
			l.wrote(t, 5)
		})
	}
}

// A row's mark is written once for each new token. On PostgreSQL a row that was written is another version of the row.
func TestWritesOncePerToken(t *testing.T) {
	l := postgresLedger(t, sql.LevelReadCommitted)
	version := func() (v string) {
		t.Helper()
		if err := l.QueryRowContext(t.Context(), "SELECT ctid::text || ' ' || xmin::text FROM "+l.marks).Scan(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, s := range []fence.Sequencer{seq("b", 6), seq("c", 7)} {
		old := version()
		for i := range 5 {
			if err := l.write(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			now := version()
			if (now != old) != (i == 0) {
				t.Errorf("request %d of token %d: the mark was %s and is %s", i, s.Token, old, now)
			}
			old = now
		}
		if err := l.write(t.Context(), seq("a", 5)); !errors.Is(err, fence.ErrStale) || version() != old {
			t.Errorf("a refusal wrote: %v", err)
		}
	}
}

// On SQLite a request of a known token adds nothing to the log, though it has the write lock.
func TestSQLiteWritesOncePerToken(t *testing.T) {
	l := newLedger(t, inFile(t, "_pragma=journal_mode(WAL)"))
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(l.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for _, s := range []fence.Sequencer{seq("b", 6), seq("c", 7)} {
		old := size()
		for i := range 5 {
			if err := l.admitted(t, s).Commit(); err != nil {
				t.Fatal(err)
			}
			now := size()
			if (now != old) != (i == 0) {
				t.Errorf("request %d of token %d: the log had %d bytes and has %d", i, s.Token, old, now)
			}
			old = now
		}
	}
}

// On SQLite, nobody else writes from Admit on; and who has read before fails when another has written since.
func TestSQLiteLocks(t *testing.T) {
	l := newLedger(t, inFile(t, "_pragma=busy_timeout(0)&_pragma=journal_mode(WAL)"))
	if err := l.write(t.Context(), seq("a", 5)); err != nil {
		t.Fatal(err)
	}
	for _, under := range []fence.Sequencer{seq("a", 5), seq("b", 6)} { // known, and new
		tx, other := l.admitted(t, under), l.begin(t)
		if err := l.table.Admit(t.Context(), other, seq("b", 6)); !busy(err) {
			t.Errorf("beside token %d: %v", under.Token, err)
		}
		if err := errors.Join(other.Rollback(), tx.Rollback()); err != nil {
			t.Fatal(err)
		}
	}
	reader := l.begin(t)
	var n int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM "+l.lines).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if err := l.write(t.Context(), seq("b", 6)); err != nil {
		t.Fatal(err)
	}
	if err := l.table.Admit(t.Context(), reader, seq("a", 5)); !busy(err) {
		t.Errorf("who has read before: %v", err)
	}
}

// A wait for the lock ends with its context, and bad sequencers go no further.
func TestErrors(t *testing.T) {
	l := postgresLedger(t, sql.LevelReadCommitted)
	under := l.admitted(t, seq("a", 5))
	ctx, cancel := context.WithCancel(t.Context())
	waiter := l.attempt(ctx, t, seq("b", 6))
	l.waits(t, waiter)
	cancel()
	if err := <-waiter.done; err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "n: the mark of token 6") {
		t.Errorf("%v", err)
	}
	for _, s := range []fence.Sequencer{seq("a", 0), seq("", 5), seq("a", fence.MaxToken+1)} {
		if err := l.table.Admit(t.Context(), under, s); !errors.Is(err, fence.ErrMalformed) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
