package dr

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/standby"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/open"
)

// leaseOptions are the flags by which standby and its commands find the lease.
type leaseOptions struct {
	config  string
	dr      string
	checker string
}

// add offers the flags.
func (o *leaseOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.config, "config", "", "the configuration file, as Admiral has it")
	f.StringVar(&o.dr, "dr_state_store_config_path", "", "Admiral's name for --config")
	f.StringVar(&o.checker, "admiral_state_checker_name", "",
		strings.Join(admiral.Checkers().Names(), ", ")+" (default: the table, or the store that the file or --store names)")
}

// checkedLease is the lease that the flags and the file are about.
type checkedLease struct {
	a       *app
	cfg     admiral.Config
	read    admiral.Config // cfg as the file has it
	path    string         // of the file; "" for none, or where the checker is unknown
	checker string         // as the registry writes it
}

// name is what to call it: the lease's name, or what has none.
func (l checkedLease) name() string {
	if l.cfg.LeaseName == "" {
		return l.checker
	}
	return l.cfg.LeaseName
}

// resolve reads the file and settles which checker is meant.
func (o leaseOptions) resolve(a *app) (checkedLease, error) {
	l := checkedLease{a: a, checker: o.checker}
	path := o.config
	switch {
	case path != "" && o.dr != "" && path != o.dr:
		return l, cli.Usage("--config %s and --dr_state_store_config_path %s are two names of one flag: give one", path, o.dr)
	case path == "":
		path = o.dr
	}
	if err := admiral.Checkers().Check(o.checker); o.checker != "" && err != nil {
		return l, cli.Exit(cli.ExitUsage, err)
	}
	if path == "" && !strings.EqualFold(o.checker, admiral.NoOP) {
		return l, cli.Usage("--config is missing: the file with leaseName, podIdentifier, waitTimeInSeconds and failureThreshold")
	}
	var err error
	if path != "" {
		if l.cfg, err = admiral.LoadConfig(path); err != nil {
			return l, cli.Exit(cli.ExitUsage, err)
		}
		l.read = l.cfg
	}
	if a.Values.Find("store").Source.Kind == config.Flag {
		l.cfg.Store = a.Values.Get("store")
	}
	switch {
	case l.checker != "":
	case l.cfg.Store != "":
		l.checker = admiral.Leasehold
	default:
		l.checker = admiral.DynamoDB
	}
	for _, name := range admiral.Checkers().Names() {
		if strings.EqualFold(name, l.checker) {
			l.checker, l.path = name, path
		}
	}
	return l, nil
}

// make makes the checker, which does no I/O. Its error names the file that it is about.
func (l checkedLease) make(p admiral.Params) (admiral.StateChecker, error) {
	c, err := admiral.Checkers().New(l.checker, p)
	if err != nil && l.path != "" {
		return nil, fmt.Errorf("%s: %w", l.path, err)
	}
	return c, err
}

// params are what the checker needs, but for its options.
func (l checkedLease) params() admiral.Params {
	return admiral.Params{Config: l.cfg, Table: standby.OpenTable, Store: l.openStore}
}

// openStore opens the store that the file or --store names, or the one that is set.
func (l checkedLease) openStore(ctx context.Context, cfg admiral.Config) (store.Store, error) {
	if cfg.Store == "" {
		return l.a.Open(ctx, true)
	}
	url, err := open.Parse(cfg.Store)
	if err != nil {
		return nil, err
	}
	return url.Open(ctx, open.Options{Log: l.a.LogTo(l.a.Err)})
}

// checkRegion returns an error if nothing names the Region of the table. It reads the settings of
// AWS, and asks no server.
func (l checkedLease) checkRegion(ctx context.Context) error {
	if l.checker != admiral.DynamoDB {
		return nil
	}
	err := standby.CheckRegion(ctx, l.cfg)
	if err != nil && l.path != "" {
		return fmt.Errorf("%s: %w", l.path, err)
	}
	return err
}

// open opens the place where the lease is, for an operator.
func (l checkedLease) open(ctx context.Context) (store.Store, error) {
	if l.checker == admiral.NoOP {
		return nil, cli.Usage("the state checker %s has no lease: there is nothing to look at or to change", admiral.NoOP)
	}
	// Making the checker says what is missing in the file.
	_, err := l.make(l.params())
	if err == nil {
		err = l.checkRegion(ctx)
	}
	if err != nil {
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	p := l.params()
	open := p.Store
	if l.checker == admiral.DynamoDB {
		open = p.Table
	}
	st, err := open(ctx, l.cfg)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return st, nil
}
