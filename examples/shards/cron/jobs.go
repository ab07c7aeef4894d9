package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/shard"
)

// jobs is the table of jobs, and the log of what was fired: the work, in this example.
type jobs struct{ *sql.DB }

const each = 50 * time.Millisecond // how often a worker looks for jobs that are due

// openJobs makes a table of n jobs, which run every one to five seconds.
func openJobs(ctx context.Context, path string, n int) (*jobs, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it says so
	if _, err := tx.ExecContext(ctx, `
		CREATE TABLE jobs (name TEXT PRIMARY KEY, every INTEGER, first INTEGER, due INTEGER, token INTEGER DEFAULT 0);
		CREATE INDEX by_due ON jobs (due);
		CREATE TABLE log (job TEXT, tick INTEGER, token INTEGER, late INTEGER)`); err != nil {
		return nil, err
	}
	now := clock.System().Wall().UnixMilli()
	for i := range n {
		name := fmt.Sprintf("job-%05d", i)
		hash := shard.Hash(name)
		every := int64(1000 + hash%4001)
		if _, err := tx.ExecContext(ctx, `INSERT INTO jobs (name, every, first, due) VALUES (?1, ?2, ?3, ?3)`, name, every, now+int64(hash>>32)%every); err != nil {
			return nil, err
		}
	}
	return &jobs{db}, tx.Commit()
}

// run fires jobs until ctx is done.
func (w *worker) run(ctx context.Context, db *jobs) {
	defer close(w.done)
	for clock.Sleep(ctx, clock.System(), each) == nil {
		n, err := w.fire(ctx, db)
		w.fired += n
		if err != nil && ctx.Err() == nil {
			w.err = err
			return
		}
	}
}

// due is a job that is to be fired.
type due struct {
	name       string
	tick, next int64
}

// fire fires the jobs of this worker that are due, in one transaction.
func (w *worker) fire(ctx context.Context, db *jobs) (int, error) {
	now := clock.System().Wall().UnixMilli()
	all, err := db.due(ctx, now)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it says so
	n := 0
	for _, d := range all {
		token, err := w.owner.Check(d.name)
		if err != nil {
			continue // another worker fires it
		}
		// The row refuses an earlier owner, and a tick that was fired already.
		done, err := tx.ExecContext(ctx, `UPDATE jobs SET due = ?, token = ? WHERE name = ? AND due = ? AND token <= ?`, d.next, int64(token), d.name, d.tick, int64(token))
		if err != nil {
			return 0, err
		}
		if changed, err := done.RowsAffected(); err != nil || changed == 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO log VALUES (?, ?, ?, ?)`, d.name, d.tick, int64(token), now-d.tick); err != nil {
			return 0, err
		}
		n++
	}
	return n, tx.Commit()
}

// due returns the jobs that are due, whoever owns them.
func (j *jobs) due(ctx context.Context, now int64) ([]due, error) {
	rows, err := j.QueryContext(ctx, `SELECT name, due, due + every FROM jobs WHERE due <= ? ORDER BY due`, now)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []due
	for rows.Next() {
		var d due
		if err := rows.Scan(&d.name, &d.tick, &d.next); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, rows.Err()
}

// audit is what the log says.
type audit struct {
	fired, twice, skipped int
	never                 int // jobs
	latest                time.Duration
}

// audit compares the log with the schedules.
func (j *jobs) audit(ctx context.Context) (a audit, err error) {
	var late int64
	err = j.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM log), (SELECT max(late) FROM log),
			(SELECT count(*) FROM (SELECT 1 FROM log GROUP BY job, tick HAVING count(*) > 1)),
			(SELECT sum((due - first) / every) FROM jobs) - (SELECT count(*) FROM (SELECT DISTINCT job, tick FROM log)),
			(SELECT count(*) FROM jobs WHERE due = first)`).Scan(&a.fired, &late, &a.twice, &a.skipped, &a.never)
	a.latest = time.Duration(late) * time.Millisecond
	return a, err
}
