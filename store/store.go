package store

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
)

// Record is one row of ownership.
type Record struct {
	Key          string            // at most MaxKey bytes of printable UTF-8
	Owner        string            // "" when nobody holds it
	Token        fence.Token       // raised at every change of ownership, never lowered
	TTL          time.Duration     // how long the hold lasts past its last renewal
	Session      string            // key of the record whose renewals keep this one alive; "" when it is its own
	Acquired     time.Time         // wall clock, for people; never decides anything
	Intervention Intervention      // what was done to this hold from outside; "" as a rule
	Kind         Kind              // what the name is, as its use said; "" where no use has
	Note         string            // who intervened, and why; for people
	Info         map[string]string // for people: host, pid, operation, version
	Past         []Term            // the last MaxPast terms, newest first
	Data         []byte            // the primitive's own state
	Nonce        string            // id of the write that made this record
	Version      string            // the store's compare-and-swap value; "" when the record is not stored yet

	// Age is a lower bound, which the engine vouches for whatever wall clocks do, on the time since the write that made
	// this version was sent, from when a holder counts its validity. It is 0 when the engine can't tell, and [AgeGone] when
	// it knows that the writer is gone. It holds for the moment at which the record was read; it is not stored, and
	// ignored in a Put.
	Age time.Duration
}

// Intervention says what somebody other than the holder did to a hold.
type Intervention string

// The interventions. A record without one has "".
const (
	// InterventionBroken: an operator ended the hold. Its holder stops renewing. A waiter takes the name when the holder has
	// released it, or has not written its record for TTL.
	InterventionBroken Intervention = "broken"
	// InterventionHandedOver: the previous holder named Owner its successor. Owner's term begins with its own write, under a
	// new token, which clears the intervention. Without such a write, the record is dead after TTL like any other.
	InterventionHandedOver Intervention = "handed"
	// InterventionNotice is on a session's record, whose Data names leases of the session that were broken. The session's next
	// renewal finds it, ends those leases and clears it.
	InterventionNotice Intervention = "notice"
)

// Term is one ended term of ownership, for people to read.
type Term struct {
	Owner string      // who held it
	Token fence.Token // under which token
	From  time.Time   // wall clock of the holder
	Until time.Time   // wall clock of the process that ended it
	Why   string      // why it ended: released, expired, broken, handed over
}

// Clone returns a copy that shares no memory with r.
func (r Record) Clone() Record {
	r.Info = maps.Clone(r.Info)
	r.Past = slices.Clone(r.Past)
	r.Data = slices.Clone(r.Data)
	return r
}

// Store keeps records. All methods may be called from any goroutine. They block until the store answered or ctx is done;
// a write whose ctx ends while it is under way has an unknown outcome. A call whose ctx was done before does nothing; its
// error matches the [context.Cause]. A key or prefix that no store would take is an *[InvalidError]. After Close all return
// [ErrClosed].
type Store interface {
	// Get returns the record under key, or an error that matches [ErrNotFound]. It sees every write that was acknowledged to
	// anyone before Get was called, for as long as no leader is cut off: [Properties.Read] says what that is worth, and
	// [Confirm] waits for certainty.
	Get(ctx context.Context, key string) (Record, error)

	// Put writes rec if rec.Version is still the stored one; "" demands that the key is not stored. It returns the
	// record with its new Version. Another version is a *[ConflictError], a key that is not stored any more is
	// [ErrNotFound], a record that no store would take is an *[InvalidError]. See the package's doc for outcomes.
	Put(ctx context.Context, rec Record) (Record, error)

	// Delete removes the record if version is still the stored one, with the errors of Put. Deleting forgets the token:
	// only records that have long been free are deleted, by a sweep.
	Delete(ctx context.Context, key, version string) error

	// List yields the records whose keys begin with prefix, in no promised order. A record that is there throughout is
	// yielded once, as it was at some moment of the call; one that comes or goes meanwhile may be missed. After an error
	// the sequence ends. A row that can't be read is yielded as an error that matches [ErrCorrupt] and names its key,
	// and the sequence continues.
	List(ctx context.Context, prefix string) iter.Seq2[Record, error]

	// Close frees what the store holds. Waits under way return [ErrClosed]. Closing twice is no error.
	Close() error
}

// Waiter is the optional interface of stores that can push. Use [Wait], which polls where it is missing.
type Waiter interface {
	// Wait returns the record once the stored version is another than version, at once if it already is. A key that is
	// not stored has version "": a record that was deleted is returned as Record{Key: key}, without an error. Wait may
	// miss versions in between, but never the last one.
	Wait(ctx context.Context, key, version string) (Record, error)
}

// Load is Get, but a key that is not stored is no error: it returns Record{Key: key}, which is free, with token 0.
func Load(ctx context.Context, s Store, key string) (Record, error) {
	rec, err := s.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return Record{Key: key}, nil
	}
	return rec, err
}
