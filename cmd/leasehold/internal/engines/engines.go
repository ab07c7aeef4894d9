// Package engines has the command open stores of every engine that the build has. Commands that
// work without it know files alone.
package engines

import (
	"context"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/open"
)

func init() {
	cli.Use(cli.Engines{
		Parse: func(text string) (cli.StoreURL, error) {
			url, err := open.Parse(text)
			if err != nil {
				return cli.StoreURL{}, err
			}
			return cli.NewStoreURL(url.Scheme.Name, url.String()), nil
		},
		Open: func(ctx context.Context, u cli.StoreURL, opts cli.OpenOptions) (store.Store, error) {
			url, err := open.Parse(u.String())
			if err != nil {
				return nil, err
			}
			return url.Open(ctx, open.Options{CreateDir: opts.MakeDir, MustExist: opts.MustExist, Log: opts.Log})
		},
		Unreachable: open.Unreachable,
		Redact:      open.Redact,
		Stores: func() (all []cli.StoreKind) {
			for _, s := range open.Schemes() {
				all = append(all, cli.StoreKind{Name: s.Name, Form: s.Form, Doc: s.Doc})
			}
			return all
		},
	})
}

// URL returns the store that is set, and whether that is the default one.
func URL(a *cli.App) (url open.URL, standard bool, err error) {
	u, standard, err := a.StoreURL()
	if err != nil || u == (cli.StoreURL{}) {
		return open.URL{}, standard, err
	}
	url, err = open.Parse(u.String())
	return url, standard, err
}
