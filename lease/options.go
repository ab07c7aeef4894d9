package lease

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
)

// Options are the settings by which a [Manager] holds names. The zero value is right for most
// programs.
type Options struct {
	// TTL is how long a name stays taken after its holder's last sign of life: 15 s by default, 10
	// ms at least. A holder counts on TTL·(1−Margin) of it. [WithTTL] gives one hold another TTL.
	TTL time.Duration

	// Margin is the share of the TTL that the holder leaves unused, so that it stops before others
	// start: 0.2 by default. It has to be at least 2·Drift/(1+Drift).
	Margin float64

	// Drift is the bound of the error of any involved clock's rate: 0.11 (11 %) by default. Time
	// daemons slew clocks by up to 8 %.
	Drift float64

	// Renew is the time from one renewal to the next: TTL/3 by default. Renewals come up to a fifth
	// earlier, at random.
	Renew time.Duration

	// Attempt is the time without an answer after which a renewal is late: TTL/20 by default. Then
	// the lease is in jeopardy. The manager sends the request once more, and again each 2·Attempt,
	// so that a store which hangs and comes back is found soon. The manager awaits the first two
	// requests as long as the lease lasts: a store that is slow keeps its leases. At most three
	// requests run at once.
	Attempt time.Duration

	// Name is a given name that becomes part of the owner id, human-readable. Two managers with the
	// same name are two holders.
	Name string

	// Info is written into every record that the manager takes, human-readable: operation, version.
	// The manager adds host and pid by itself. Info has at most 8 KiB as JSON.
	Info map[string]string

	// Fencing, if set, is what the tokens have to be worth. With [store.FencingLinearizable]
	// NewManager refuses a store that may lose acknowledged writes, or doesn't say that it can't. 0
	// takes any store.
	//
	// A store may come to be worth less while it is open, when its server's settings change. The
	// store notices some seconds later. From then on the manager takes, renews and hands over
	// nothing. An Acquire retries until ctx is done, and a lease is in jeopardy until it has
	// expired. The manager still releases.
	Fencing store.Fencing

	// Outlived says that work under a lease may outlive this process: work that it started
	// elsewhere, say. Then a name stays taken for its TTL after the process has ended. Otherwise a
	// store that can prove the end ([driver.Witness]) gives the name to the next holder at once.
	Outlived bool

	// Sightings, if set, keeps what this manager sees of names that others hold, for the next
	// process on this machine. It matters on a store that vouches for no age ([store.Properties]).
	// There a process that tries once and ends never takes a dead holder's name without Sightings.
	// The caller saves the book before the process ends; see [sightings.Book.Save]. Sightings needs
	// the system's clock.
	Sightings *sightings.Book

	// Clock is the source of time; [clock.System] by default.
	Clock clock.Clock

	// OnWait, if set, is called when an Acquire, or a lock of package lock, starts to wait, and
	// when the holder changes. It must not block.
	OnWait func(*HeldError)

	// OnRetry, if set, is called when an Acquire, or a lock of package lock, retries because the
	// store did not answer, or refused. It is called once for each reason. It must not block.
	OnRetry func(name string, err error)

	// OnEvent, if set, is called for every event of every lease and session, soon after the event.
	// The calls come one at a time, in each lease's order. OnEvent runs in a goroutine of its own,
	// so it may block. It may call any method of the manager, its leases and its sessions, with one
	// exception: the manager's Close waits for it. An OnEvent that never returns keeps all later
	// events in memory.
	OnEvent func(Event)

	// Trace, if set, has the hooks of telemetry; package leaseotel makes them.
	Trace *Trace
}

// maxInfo bounds Info, so that a record with its history and a primitive's data stays within
// store.MaxRecord.
const maxInfo = 8 << 10

// maxName bounds a given name, so that an owner id and a session's key made from it fit a record.
const maxName = 100

func (o Options) timing() protocol.Timing {
	return protocol.Timing{TTL: o.TTL, Margin: o.Margin, Drift: o.Drift, Renew: o.Renew, Attempt: o.Attempt}.WithDefaults()
}

func (o Options) check(st store.Store) error {
	if err := o.timing().Check(); err != nil {
		return fmt.Errorf("lease options: %w", err)
	}
	if err := o.checkFencing(store.Describe(st)); err != nil {
		return fmt.Errorf("lease options: %w", err)
	}
	if len(o.Name) > maxName || !utf8.ValidString(o.Name) || strings.ContainsFunc(o.Name, func(r rune) bool { return !unicode.IsPrint(r) || r == '/' }) {
		return fmt.Errorf("lease options: name %.60q: want at most %d printable characters, without a slash", o.Name, maxName)
	}
	if b, err := json.Marshal(o.Info); err != nil || len(b) > maxInfo {
		return fmt.Errorf("lease options: info of %d bytes as JSON: want at most %d", len(b), maxInfo)
	}
	for k, v := range o.Info {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("lease options: info %.40q=%.40q: want valid UTF-8", k, v)
		}
	}
	return nil
}

func (o Options) checkFencing(p store.Properties) error {
	switch {
	case o.Fencing < store.FencingUnknown || o.Fencing > store.FencingLinearizable:
		return fmt.Errorf("fencing %d: want %q, %q, or nothing", int(o.Fencing), store.FencingLinearizable, store.FencingPerPrimary)
	case p.Fencing >= o.Fencing:
		return nil
	case p.Fencing == store.FencingUnknown:
		return fmt.Errorf("fencing %q is demanded, and the store doesn't say what its tokens are worth: use a store.Describer", o.Fencing)
	}
	return fmt.Errorf("fencing %q is demanded, and the tokens of %s are good %s: a failover may lose acknowledged writes; use a store that loses none", o.Fencing, p.Engine, p.Fencing)
}

// newOwner returns an owner id that no other process has: the given name, host, pid, and 65 random
// bits. Containers often have one host name and pid 1 in common, so the random part is what tells
// holders apart.
func newOwner(name string) (owner string, info map[string]string) {
	host := hostPart(os.Hostname())
	pid := fmt.Sprint(os.Getpid())
	owner = fmt.Sprintf("%.64s/%s/%s", host, pid, strings.ToLower(rand.Text()[:13]))
	if name != "" {
		owner = name + "/" + owner
	}
	return owner, map[string]string{"host": host, "pid": pid}
}

// hostPart returns a host's name as it may stand in an owner id: [os.Hostname] says it, or that it
// has none.
func hostPart(host string, err error) string {
	if err != nil || host == "" {
		return "unknown-host"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != '/' {
			return r
		}
		return '-'
	}, host)
}
