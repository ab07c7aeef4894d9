package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// topics are how the writers and the waiters of a table find each other. Who waits for a key holds
// the key's advisory lock, shared, as long as its connection listens to the key's channel. Who
// writes the key tries to take that lock for itself alone until it has committed: when it can't, it
// notifies. So a waiter has the lock only when the writes before it show to who reads next, and
// those after it notify.
//
// The server's table of locks has room for 64 a connection by default. So a process that waits for
// more than [narrow] keys has none for the others: it holds the lock of the crowd, for itself
// alone, which has writers notify the crowd's channel of every key. Another such process finds the
// lock taken, which is as good, and tries again every few seconds.
type topics struct {
	channel string // "" without; that of older processes, which notify it of every key
	class   int32  // of the locks of keys
	crowd   int32  // the class of the crowd's lock, whose number is 0
}

// narrow is how many keys a process has locks for.
const narrow = 32

func newTopics(schema, table string) topics {
	name := sha256.Sum256([]byte(schema + "\x00" + table))
	return topics{
		channel: "leasehold_" + hex.EncodeToString(name[:8]),
		class:   int32(binary.BigEndian.Uint32(name[8:])),  //nolint:gosec // any 32 bits will do
		crowd:   int32(binary.BigEndian.Uint32(name[12:])), //nolint:gosec // any 32 bits will do
	}
}

// number returns a key's: the first four bytes of its SHA-256.
func number(key string) int32 {
	sum := sha256.Sum256([]byte(key))
	return int32(binary.BigEndian.Uint32(sum[:])) //nolint:gosec // any 32 bits will do
}

// of returns the channel of the keys with that number.
func (t topics) of(n int32) string { return fmt.Sprintf("%s_%08x", t.channel, uint32(n)) } //nolint:gosec // the same bits

// crowded returns the channel of those who wait for many keys.
func (t topics) crowded() string { return t.channel + "_all" }

// args are what a write's statement needs, see tell.
func (t topics) args(key string) []any {
	n := number(key)
	return []any{t.channel, t.class, t.crowd, n, t.of(n)}
}

// tell notifies whom there is to tell, unless its first argument is empty: those of the statement
// from that number on, see topics.args. It is evaluated when the write was done, and both locks are
// held until that has committed.
func tell(first int) string {
	return tellOf("$1::text", fmt.Sprintf("$%d::int", first+3), fmt.Sprintf("$%d::text", first+4), first)
}

// tellOf is tell of the key, number and channel that are these expressions. Only the first three
// arguments are the statement's.
func tellOf(key, number, channel string, first int) string {
	return fmt.Sprintf(`CASE WHEN $%[1]d::text <> '' THEN
    CASE WHEN pg_try_advisory_xact_lock_shared($%[3]d::int, 0) THEN '' ELSE pg_notify($%[1]d::text || '_all', %[4]s)::text END ||
    CASE WHEN pg_try_advisory_xact_lock($%[2]d::int, %[5]s) THEN '' ELSE pg_notify(%[6]s, %[4]s)::text END
  END`, first, first+1, first+2, key, number, channel)
}

const (
	// lockSQL takes the shared locks of those numbers that nobody is writing, and unlockSQL gives
	// them back.
	lockSQL   = `SELECT n FROM unnest($2::int[]) n WHERE pg_try_advisory_lock_shared($1::int, n)`
	unlockSQL = `SELECT pg_advisory_unlock_shared($1::int, n)::text FROM unnest($2::int[]) n`

	// crowdSQL says whose the crowd's lock is. Where it is nobody's it takes it, behind the writes
	// that are under way.
	crowdSQL = `SELECT CASE WHEN EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = $2::bigint AND objid = 0 AND objsubid = 2
    AND mode = 'ExclusiveLock' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN 'theirs'
  WHEN set_config('lock_timeout', '200ms', true) <> '' THEN 'ours' || pg_advisory_lock($1::int, 0)::text END`
	// disperseSQL gives it back, and has others take it.
	disperseSQL = `SELECT pg_advisory_unlock($1::int, 0)::text || pg_notify($2::text, '')::text`
)
