package step

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/holdfile"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/open"
)

func (a *app) renewCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "renew --hold FILE",
		Short: "Renew what acquire acquired",
		Long: "Renew the hold that FILE proves, as `leasehold acquire` made it. The hold then lasts for its TTL from now on, or for that of --ttl.\n\n" +
			"Exit codes: 79 if the hold is lost; 1 if FILE isn't that of the hold; 125 if the store doesn't answer or confirm: the hold lasts as\n" +
			"long as before at least, so try again.",
		Example: "  leasehold renew --hold deploy.hold || exit\n  leasehold renew --hold deploy.hold --ttl 2h",
		Args:    cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ttl := time.Duration(0)
			if cmd.Flags().Changed("ttl") {
				ttl = a.Duration("ttl")
			}
			return a.renew(cmd.Context(), path, ttl)
		},
	}
	cmd.Flags().StringVar(&path, "hold", "", "the file that `acquire` made")
	a.Flag(cmd.Flags(), "ttl")
	a.Flag(cmd.Flags(), "output")
	return cmd
}

// withTerm opens the file of a hold and the store that it is in, and calls f.
func withTerm(ctx context.Context, a *cli.App, file *holdfile.File, h holdfile.Hold, f func(*term) error) error {
	open := a.Open
	if a.Values.Find("store").Source.Kind == config.Default && h.Store != "" {
		open = func(ctx context.Context, _ bool) (store.Store, error) { return openURL(ctx, a, h.Store) }
	}
	st, err := open(ctx, false)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	return errors.Join(f(&term{st: st, clk: a.Clock}), st.Close())
}

// openURL opens the store that a file names.
func openURL(ctx context.Context, a *cli.App, text string) (store.Store, error) {
	url, err := open.Parse(text)
	if err != nil {
		return nil, err
	}
	ctx, cancel := clock.WithTimeout(ctx, a.Clock, cli.OpenLimit)
	defer cancel()
	return url.Open(ctx, open.Options{MustExist: true, Log: a.LogTo(a.Err)})
}

func (a *app) renew(ctx context.Context, path string, ttl time.Duration) error {
	if path == "" {
		return cli.Usage("--hold is missing: the file that `leasehold acquire` made")
	}
	file, h, err := holdfile.Open(path)
	if err != nil {
		return err
	}
	if h.Token == 0 {
		return errors.Join(fmt.Errorf("%s: the `acquire` that made it didn't end well: run leasehold release --hold %s, then acquire again", path, path), file.Close())
	}
	return withTerm(ctx, a.App, file, h, func(t *term) error {
		until, err := t.renew(ctx, h, ttl)
		if err != nil {
			return errors.Join(a.outcome(path, err), file.Close())
		}
		h.Until, h.Boot = until, holdfile.Boot()
		if err := errors.Join(file.Write(h), file.Close()); err != nil {
			return fmt.Errorf("%s is renewed, but its file can't be written: %w", h.Name, err)
		}
		a.Say("%s is held under token %d; renew it within %v", h.Name, h.Token, until.Sub(a.Clock.Now()).Truncate(time.Second))
		if a.Output() == output.Table {
			return nil
		}
		rec, err := store.Load(ctx, t.st, h.Name)
		if err != nil {
			return err
		}
		v, err := a.Look(ctx, t.st, rec)
		if err != nil {
			return err
		}
		return output.WriteJSON(a.Out, v, a.Output() == output.Lines)
	})
}

// outcome gives the exit code of a change of a hold that failed.
func (a *app) outcome(path string, err error) error {
	switch {
	case errors.Is(err, errWrong):
		return cli.Exit(cli.ExitNo, fmt.Errorf("%s: %w", path, err))
	case errors.Is(err, lease.ErrLost):
		return cli.Exit(cli.ExitLost, err)
	case errors.Is(err, store.ErrUnknownOutcome):
		return fmt.Errorf("%w: run this again to find out", err)
	}
	return err
}

// Release frees the name whose hold the file proves, and removes the file. A file that isn't there
// is no error: it was released before. name, if it isn't "", has to be that of the hold.
func Release(ctx context.Context, c *cli.App, path, name string) error {
	a := &app{view.New(c)}
	file, h, err := holdfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, holdfile.ErrRemoved) {
		a.Say("%s isn't there: it was released before, or never acquired", path)
		return nil
	}
	if err != nil {
		return err
	}
	if name != "" && name != h.Name {
		return errors.Join(cli.Exit(cli.ExitNo, fmt.Errorf("%s is the file of %s, not of %s: nothing was released", path, h.Name, name)), file.Close())
	}
	return a.end(ctx, path, file, h)
}

// end releases the hold of a file that is open, and removes the file unless the name may still be
// held by it.
func (a *app) end(ctx context.Context, path string, file *holdfile.File, h holdfile.Hold) error {
	return withTerm(ctx, a.App, file, h, func(t *term) error {
		err := t.release(ctx, h)
		if err != nil && !errors.Is(err, lease.ErrLost) {
			return errors.Join(a.outcome(path, err), file.Close())
		}
		if removed := file.Remove(); removed != nil {
			err = errors.Join(err, fmt.Errorf("%s is over, but its file can't be removed: %w", h.Name, removed))
		}
		switch {
		case err != nil:
			return a.outcome(path, err)
		case h.Token == 0:
			a.Say("%s: the `acquire` that made %s didn't end well; nothing is held by it", h.Name, path)
		case h.Here() && h.Until < a.Clock.Now():
			a.Say("%s is free; its hold had been over for %v, though nobody else has taken it", h.Name, a.Clock.Now().Sub(h.Until).Round(time.Second))
		default:
			a.Say("%s is free", h.Name)
		}
		return nil
	})
}
