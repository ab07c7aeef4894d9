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
	Key   string        // at most MaxKey bytes of printable UTF-8
	Owner string        // "" when nobody holds it
	Token fence.Token   // raised at every change of ownership, never lowered
	TTL   time.Duration // how long the hold lasts past its last renewal

	// Session is the key of the record whose renewals keep this one alive. It is "" when this
	// record keeps itself alive.
	Session      string
	Acquired     time.Time         // wall clock, human-readable; never decides anything
	Intervention Intervention      // what was done to this hold from outside; "" as a rule
	Kind         Kind              // what the name is, as its use said; "" where no use has
	Note         string            // who intervened, and why; human-readable
	Info         map[string]string // human-readable: host, pid, operation, version
	Past         []Term            // the last MaxPast terms, newest first
	Data         []byte            // the primitive's own state
	Nonce        string            // id of the write that made this record

	// Version is the store's compare-and-swap value. It is "" when the record is not stored yet.
	Version string

	// Age is a lower bound on the time since the write that made this version was sent. From then
	// on a holder counts its validity. The engine vouches for the bound whatever wall clocks do.
	// Age is 0 when the engine can't tell, and [AgeGone] when it knows that the writer is gone. Age
	// holds for the moment at which the record was read. It is not stored, and ignored in a Put.
	Age time.Duration
}

// Intervention is what somebody other than the holder did to a hold.
type Intervention string

// The interventions. A record without one has "".
const (
	// InterventionBroken means that an operator ended the hold. Its holder stops renewing. A waiter
	// takes the name when the holder has released it, or has not written its record for TTL.
	InterventionBroken Intervention = "broken"
	// InterventionHandedOver means that the previous holder named Owner its successor. Owner's term
	// begins with its own write, under a new token, which clears the intervention. Without such a
	// write, the record is dead after TTL like any other.
	InterventionHandedOver Intervention = "handed"
	// InterventionNotice is on a session's record, whose Data names leases of the session that were
	// broken. The session's next renewal finds the notice, ends those leases and clears the notice.
	InterventionNotice Intervention = "notice"
)

// InfoTraceParent is the key in [Record.Info] of the W3C traceparent of the acquisition that made
// the term. A record keeps that entry when its holder frees the name or hands it over, up to 128
// bytes, so that the next term can link to the trace. It decides nothing.
const InfoTraceParent = "traceparent"

// Term is one ended term of ownership, human-readable.
type Term struct {
	Owner string      // who held the name
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

// Store keeps records. All methods may be called from any goroutine. They block until the store has
// answered or ctx is done. A write whose ctx ends before the answer has an unknown outcome. A call
// whose ctx was done before the call does nothing; its error matches the [context.Cause]. A key or
// prefix that no store would take is an *[InvalidError]. After Close all methods return
// [ErrClosed].
type Store interface {
	// Get returns the record under key, or an error that matches [ErrNotFound]. It sees every write
	// that was acknowledged to anyone before Get was called, as long as no leader is cut off.
	// [Properties.Read] says what that is worth, and [Confirm] waits for certainty.
	Get(ctx context.Context, key string) (Record, error)

	// Put writes rec if rec.Version is still the stored one. Version "" demands that the key is not
	// stored. Put returns the record with its new Version. Another version is a *[ConflictError]. A
	// key that is not stored any more is [ErrNotFound]. A record that no store would take is an
	// *[InvalidError]. See the package's doc for outcomes.
	Put(ctx context.Context, rec Record) (Record, error)

	// Delete removes the record if version is still the stored one, with the errors of Put.
	// Deleting a record also deletes the name's last token. So only a sweep deletes records, and
	// only those that have long been free.
	Delete(ctx context.Context, key, version string) error

	// List yields the records whose keys begin with prefix, in no promised order. A record that is
	// there throughout is yielded once, as it was at some moment of the call. A record that comes
	// or goes meanwhile may be missed. After an error the sequence ends, with one exception. A row
	// that can't be read is yielded as an error that matches [ErrCorrupt] and names its key, and
	// the sequence continues.
	List(ctx context.Context, prefix string) iter.Seq2[Record, error]

	// Close frees what the store holds. Waits that have not returned yet return [ErrClosed].
	// Closing twice is no error.
	Close() error
}

// Waiter is the optional interface of stores that can push. Use [Wait], which polls where a store
// has none.
type Waiter interface {
	// Wait blocks until the stored version is another than version, and returns the record then, at
	// once if the version already differs. A key that is not stored has version "". A record that
	// was deleted is returned as Record{Key: key}, without an error. Wait may miss versions in
	// between, but never the last one.
	Wait(ctx context.Context, key, version string) (Record, error)
}

// Load is Get, but a key that is not stored is no error. Load then returns Record{Key: key}, which
// is free, with token 0.
func Load(ctx context.Context, s Store, key string) (Record, error) {
	rec, err := s.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return Record{Key: key}, nil
	}
	return rec, err
}
