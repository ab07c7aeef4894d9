package dr

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"strings"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
)

// scratchName is the name of a rehearsal's own lease, beside that of the real one.
func scratchName(lease string) string {
	const most, random = 150, 8 // a lease's name has 200 bytes at most
	return string([]byte(lease)[:min(len(lease), most)]) + "-rehearsal-" + strings.ToLower(rand.Text()[:random])
}

// instance returns the command that runs an instance of a rehearsal: this program, with the same
// file and the same store.
func (a *app) instance(l checkedLease, o drillOptions) func(pod string) *exec.Cmd {
	args := []string{os.Args[0], "standby", "drill-instance", "--config", l.path, "--lease", l.cfg.LeaseName}
	if o.checker != "" {
		args = append(args, "--admiral_state_checker_name", o.checker)
	}
	if v := a.Values.Find("store"); v.Source.Kind == config.Flag {
		args = append(args, "--store", v.Text)
	}
	return func(pod string) *exec.Cmd {
		path, err := os.Executable()
		if err != nil {
			path = os.Args[0]
		}
		cmd := exec.Command(path) //nolint:noctx // the rehearsal ends it
		cmd.Args, cmd.Stderr = append(args[:len(args):len(args)], "--pod", pod), a.Err
		return cmd
	}
}

// cuttable makes the checker of an instance on the store that wrap returns.
func (l checkedLease) cuttable(wrap func(store.Store) store.Store) (admiral.StateChecker, error) {
	p := l.params()
	through := func(open opener) opener {
		return func(ctx context.Context, cfg admiral.Config) (store.Store, error) {
			st, err := open(ctx, cfg)
			if err != nil {
				return nil, err
			}
			return wrap(st), nil
		}
	}
	p.Table, p.Store = through(p.Table), through(p.Store)
	return l.make(p)
}
