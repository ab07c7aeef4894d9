package setup

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/policy"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// finding is what a row of doctor says in JSON.
type finding struct {
	What   string        `json:"what"`
	Status driver.Status `json:"status"`
	Detail string        `json:"detail,omitempty"`
	Advice string        `json:"advice,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	samples, callers := 50, ""
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the store that is set",
		Long: "Look at the store and say what stands in the way of leases on it: can it be reached, who am I there, what may I do, does it\n" +
			"honour conditional writes, how long do reads and writes take, and is the TTL right for that. It makes one record of its\n" +
			"own and deletes it. With --policy, those are asked, too, whose tokens a server's policy trusts. The exit code is 1 if something failed; a warning is none.",
		Example: "  leasehold doctor --store file:/var/lib/app/leases.db\n  leasehold doctor -o json | jq '.[] | select(.status != \"ok\")'",
		Args:    cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if samples < 1 || samples > 10_000 {
				return cli.Usage("--samples %d: want 1 to 10000", samples)
			}
			var found []driver.Finding
			err := a.WithStore(cmd.Context(), false, func(st store.Store) error {
				found = doctor.Examine(cmd.Context(), st, doctor.Options{Clock: a.Clock, TTL: a.Duration("ttl"), Samples: samples})
				return nil
			})
			if err != nil {
				found = append(found, driver.Finding{What: "open", Status: driver.StatusFail, Detail: err.Error()})
			}
			found = append(found, containment())
			found = append(found, trusted(cmd.Context(), callers)...)
			return a.diagnosis(found)
		},
	}
	cmd.Flags().IntVar(&samples, "samples", samples, "how many reads and writes are timed")
	cmd.Flags().StringVar(&callers, "policy", "", "policy `FILE` of leasehold serve: can the issuers and the cluster that it trusts be asked?")
	a.Flag(cmd.Flags(), "ttl")
	a.Flag(cmd.Flags(), "output")
	return cmd
}

// trusted is what those say whose tokens a policy trusts.
func trusted(ctx context.Context, path string) (found []driver.Finding) {
	if path == "" {
		return nil
	}
	p, err := policy.Load(path)
	if err != nil {
		return []driver.Finding{{What: "policy", Status: driver.StatusFail, Detail: err.Error()}}
	}
	defer p.Close()
	for _, t := range p.Check(ctx) {
		f := driver.Finding{What: t.What, Status: driver.StatusOK, Detail: t.Detail}
		if t.Err != nil {
			f.Status, f.Detail, f.Advice = driver.StatusFail, t.Err.Error(), "callers that it names are refused until it answers"
			if t.Login {
				f.Advice = "nobody can log in with it on the page"
			}
		}
		found = append(found, f)
	}
	return append(found, driver.Finding{What: "policy", Status: driver.StatusOK, Detail: path + " can be read"})
}

// containment is what `run` can do here about what CMD starts.
func containment() driver.Finding {
	f := driver.Finding{What: "ending CMD", Status: driver.StatusOK}
	how, why, err := supervise.Containment(supervise.ContainAuto)
	if err != nil {
		f.Status, f.Detail = driver.StatusWarn, err.Error()
		return f
	}
	f.Detail = "what it starts is ended by " + how.Words()
	if why != nil {
		f.Detail += fmt.Sprintf(" (no control group: %v)", why)
	}
	if how == supervise.ContainGroup {
		f.Status, f.Advice = driver.StatusWarn, "have CMD start nothing in a process group or session of its own"
	}
	return f
}

// diagnosis writes the findings. Some that failed are an error.
func (a *app) diagnosis(found []driver.Finding) error {
	var list []finding
	what, status, detail := output.Column{Title: "WHAT"}, output.Column{Title: "STATUS"}, output.Column{Title: "FOUND"}
	failed := 0
	for _, f := range found {
		if f.Status == driver.StatusFail {
			failed++
		}
		list = append(list, finding{f.What, f.Status, cli.OneLine(fmt.Errorf("%s", f.Detail)), f.Advice})
		text := list[len(list)-1].Detail
		if f.Advice != "" {
			text = strings.TrimSuffix(text, ".") + ". " + strings.ToUpper(f.Advice[:1]) + f.Advice[1:]
		}
		what.Cells = append(what.Cells, f.What)
		status.Cells = append(status.Cells, string(f.Status))
		detail.Cells = append(detail.Cells, text)
	}
	var err error
	if a.Output() == output.Table {
		err = output.WriteTable(a.Out, []output.Column{what, status, detail}, 0, nil)
	} else {
		err = output.WriteList(a.Out, list, a.Output() == output.Lines)
	}
	if err == nil && failed > 0 {
		return cli.Exit(cli.ExitNo, nil)
	}
	return err
}
