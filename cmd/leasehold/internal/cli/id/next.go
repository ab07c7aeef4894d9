package id

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/lease"
)

// The ways to write an id.
const (
	formDefault = "" // decimal, or base32 of an id of more than 64 bits
	formDecimal = "decimal"
	formBase32  = "base32"
	formBase62  = "base62"
	formHex     = "hex"
)

func completeLayouts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, l := range flake.Layouts() {
		names = append(names, l.Name())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// idNext is what `id next` was asked to do.
type idNext struct {
	layout   flake.Layout
	n        int
	pool     string
	metadata uint64
	with     bool // metadata was given
	form     string
}

func (a *app) idNextCommand() *cobra.Command {
	o := idNext{n: 1}
	var metadata string
	cmd := &cobra.Command{
		Use:   "next LAYOUT",
		Short: "Make ids that nobody else makes",
		Long: "Claim a node's number out of a pool, make ids of LAYOUT with it, and give it back. LAYOUT is a name (`leasehold id layouts` lists them),\n" +
			"or a specification: the epoch, the unit of time, and how many bits each part has, the most significant one first.\n\n" +
			"All that make ids of one layout have to take their numbers from one pool: it is ids-LAYOUT, unless --pool names another, and a server's\n" +
			"ids have their numbers from it, too. A pool is for one layout: ids of two can be alike. A call costs some writes to the store, whatever N\n" +
			"is. What makes many ids claims a number itself, by the library, or asks a server (GET /v1/ids/LAYOUT).\n\n" +
			"The exit code is 75 if all numbers are held.",
		Example: "  leasehold id next twitter\n" +
			"  leasehold id next scatter -n 100 --metadata 0xcafe --format hex\n" +
			"  leasehold id next epoch=2026-01-01,unit=1ms,time=41,node=10,sequence=12",
		Args:              cli.Want("LAYOUT"),
		ValidArgsFunction: completeLayouts,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.layout, err = cli.LayoutArg(args[0]); err != nil {
				return err
			}
			if o.with = metadata != ""; o.with {
				if o.metadata, err = strconv.ParseUint(metadata, 0, 64); err != nil {
					return cli.Usage("--metadata %q: want a number such as 51966 or 0xcafe", metadata)
				}
			}
			if err := o.check(); err != nil {
				return err
			}
			return a.WithManager(cmd.Context(), true, func(m *lease.Manager) error { return a.idNext(cmd.Context(), m, o) })
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.n, "number", "n", 1, "how many")
	f.StringVar(&o.pool, "pool", "", "where the node's number comes from (default ids-LAYOUT)")
	f.StringVar(&metadata, "metadata", "", "what to put into each id's bits of metadata, if the layout has any")
	f.StringVar(&o.form, "format", "", "decimal, base32, base62 or hex (default: decimal; base32 if an id has more than 64 bits)")
	a.Flag(f, "conflict-exit-code")
	a.Flag(f, "output")
	return cmd
}

func (o *idNext) check() error {
	if o.n < 1 || o.n > flake.MaxN {
		return cli.Usage("-n %d: want 1 to %d", o.n, flake.MaxN)
	}
	if width := o.layout.Width(flake.Metadata); o.with && width == 0 {
		return cli.Usage("--metadata: the layout %s has no bits for it: scatter has", o.layout.Name())
	} else if o.with && width < 64 && o.metadata>>width != 0 {
		return cli.Usage("--metadata %d: want at most %d bits, as the layout %s has", o.metadata, width, o.layout.Name())
	}
	if err := checkForm(o.form, o.layout.Bits() > 64); err != nil {
		return err
	}
	if o.pool == "" {
		o.pool = pools.OfLayout(o.layout.Name())
	}
	return cli.PoolArg(o.pool)
}

func checkForm(form string, long bool) error {
	switch form {
	case formDefault, formBase32, formBase62, formHex:
		return nil
	case formDecimal:
		if long {
			return cli.Usage("--format decimal: ids of more than 64 bits have no such form: want base32, base62 or hex")
		}
		return nil
	}
	return cli.Usage("--format %q: want decimal, base32, base62 or hex", form)
}

// idNext makes ids with a number that it has for that long.
func (a *app) idNext(ctx context.Context, m *lease.Manager, o idNext) (err error) {
	ctx, cancel := clock.WithTimeout(ctx, a.Clock, idLimit)
	defer cancel()
	s, err := m.OpenSession(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.CloseSession(context.WithoutCancel(ctx), s)) }()
	values := identity.Values{}
	if o.pool == pools.OfLayout(o.layout.Name()) {
		values = identity.Values{Range: pools.Numbers(o.layout)}
	}
	h, err := a.idClaim(ctx, s, o.pool, identity.Options{Values: values, Layout: o.layout})
	if err != nil {
		return a.idError(err)
	}
	var ids []string
	var used time.Time
	if o.layout.Bits() > 64 {
		ids, used, err = makeIDs[flake.ID96](o, h)
	} else {
		ids, used, err = makeIDs[flake.ID](o, h)
	}
	if failed := h.Release(context.WithoutCancel(ctx), used); failed != nil {
		a.Say("%s", cli.OneLine(failed)) // the ids are good all the same
	}
	if over := new(flake.OverflowError); errors.As(err, &over) {
		return cli.Usage("--pool %s: %w", o.pool, err)
	}
	if err != nil {
		return err
	}
	if a.Output() != output.Table {
		return output.WriteList(a.Out, ids, a.Output() == output.Lines)
	}
	_, err = fmt.Fprintln(a.Out, strings.Join(ids, "\n"))
	return err
}

// idClaims is how many numbers are tried.
const idClaims = 4

// idClaim claims a number that ids can be made with now. Who had it before may have died, or not
// have said up to when it was used: then its window begins later, and another number is tried.
func (a *app) idClaim(ctx context.Context, s *lease.Session, pool string, o identity.Options) (h *identity.Hold, err error) {
	var late []*identity.Hold
	defer func() {
		for _, other := range late {
			if other != h {
				// Or the end of the session frees it.
				_ = other.Release(context.WithoutCancel(ctx), other.Floor())
			}
		}
	}()
	for range idClaims {
		if h, err = identity.Claim(ctx, s, pool, o); err != nil {
			break
		}
		if h.Floor().Sub(a.Clock.Wall()) < nextWait {
			return h, nil
		}
		late = append(late, h)
	}
	if len(late) > 0 { // the one before says how late
		return late[0], nil
	}
	return nil, err
}

// nextWait is how long an id may wait for the clock: the one before may have had a clock that is
// ahead.
const nextWait = 5 * time.Second

// makeIDs makes ids, and returns from when on somebody else may use the number.
func makeIDs[T flake.Value](o idNext, h *identity.Hold) (ids []string, used time.Time, err error) {
	g, err := flake.New[T](o.layout, h.Number(), h, flake.Options{MaxWait: nextWait})
	if err != nil {
		return nil, h.Floor(), err
	}
	defer func() { used = g.Stop() }()
	for range o.n {
		var id T
		if o.with {
			id, err = g.NextWith(o.metadata)
		} else {
			id, err = g.Next()
		}
		if err != nil {
			return nil, used, err
		}
		ids = append(ids, written(id, o.form))
	}
	return ids, used, nil
}

// written is an id as text.
func written[T flake.Value](id T, form string) string {
	v, ok := any(id).(interface {
		Base32() string
		Base62() string
		Hex() string
		String() string
	})
	switch {
	case !ok:
		return ""
	case form == formBase32:
		return v.Base32()
	case form == formBase62:
		return v.Base62()
	case form == formHex:
		return v.Hex()
	}
	return v.String()
}
