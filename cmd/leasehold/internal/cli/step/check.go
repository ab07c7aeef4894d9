package step

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/holdfile"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

// Check says whether the hold of a file, or of a descriptor if fd isn't below 0, is valid. It ends
// with exit code 1 if it isn't.
func Check(ctx context.Context, c *cli.App, path string, fd int) error {
	a := &app{view.New(c)}
	what, file, h, err := openHold(path, fd)
	switch {
	case errors.Is(err, errNotLocked), errors.Is(err, fs.ErrNotExist), errors.Is(err, holdfile.ErrRemoved):
		a.Say("nothing is held by %s", what)
		return cli.Exit(cli.ExitNo, nil)
	case err != nil:
		return err
	}
	return withTerm(ctx, c, file, h, func(t *term) error {
		if err := file.Close(); err != nil {
			return err
		}
		rec, err := store.Load(ctx, store.Confirmed(t.st), h.Name)
		if err != nil {
			return err
		}
		v, err := a.Look(ctx, t.st, rec)
		if err != nil {
			return err
		}
		d := api.Verification{Name: h.Name, Token: h.Token, Holder: h.Holder}
		switch {
		case h.Lost != "":
			d.Reason = h.Lost
		case h.Token == 0:
			d.Reason = "the process that acquired it didn't end well"
		case rec.Owner != h.Holder || !v.Under(h.Token):
			d.Reason = fmt.Sprintf("the name is %s, its newest token %d", v.State, v.Token)
		case h.Here() && h.Until <= a.Clock.Now():
			d.Reason = fmt.Sprintf("it was not renewed in time: it has been over for %v", a.Clock.Now().Sub(h.Until).Round(time.Second))
		default:
			d.Current = true
		}
		return a.Verdict(d, v, fmt.Sprintf("%s isn't held by %s: %s", h.Name, what, d.Reason))
	})
}
