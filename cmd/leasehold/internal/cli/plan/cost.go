//go:build !lite

package plan

import (
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/plan"
	"github.com/leasehold/leasehold/store/dynamodb"
)

// costLine is what a row of cost says in JSON.
type costLine struct {
	What    string  `json:"what"`
	Writes  float64 `json:"write_units"`
	Reads   float64 `json:"read_units"`
	Dollars float64 `json:"dollars"`
}

func (a *app) costCommand() *cobra.Command {
	setup := dynamodb.Setup{Leases: 100, Sessions: 1, Renewals: 3, Regions: 1, RowBytes: 1024, WritePrice: dynamodb.WritePrice, ReadPrice: dynamodb.ReadPrice}
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Estimate what leases on DynamoDB cost a month",
		Long: "Print the write and read units of on-demand capacity that a setup takes in a month of 730 hours, and their price, beside\n" +
			"what it would take if every lease were renewed on its own. Prices are those of us-east-1 since November 2024, in dollars a\n" +
			"million units; see https://aws.amazon.com/dynamodb/pricing/on-demand/ for others. It asks nobody.",
		Example: "  leasehold cost --leases 10000 --sessions 20 --ttl 15s\n  leasehold cost --leases 5 --sessions 0 --waiters 10 --regions 3",
		Args:    cli.Want(),
		RunE: func(_ *cobra.Command, _ []string) error {
			for flag, v := range map[string]float64{"renewals": setup.Renewals, "write-price": setup.WritePrice, "read-price": setup.ReadPrice} {
				if !(v > 0) {
					return cli.Usage("--%s %v: want more than 0", flag, v)
				}
			}
			setup.TTL = a.Duration("ttl")
			estimate, err := dynamodb.Cost(setup)
			if err != nil {
				return cli.Exit(cli.ExitUsage, err)
			}
			return a.cost(setup, estimate)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&setup.Leases, "leases", setup.Leases, "how many are held all the time")
	flags.IntVar(&setup.Sessions, "sessions", setup.Sessions, "over how many sessions they are spread; 0: each renews itself")
	flags.Float64Var(&setup.Renewals, "renewals", setup.Renewals, "how often in a TTL a session, or a lease, is renewed")
	flags.IntVar(&setup.Waiters, "waiters", 0, "how many wait, each for a name of its own or in a process of its own")
	cli.DurationVar(flags, &setup.PollMax, "poll", time.Second, "the longest pause between two looks of a waiter")
	flags.Float64Var(&setup.Handovers, "handovers", 0, "how often a lease changes hands in a month")
	flags.IntVar(&setup.RowBytes, "row-bytes", setup.RowBytes, "size of a row")
	flags.IntVar(&setup.Regions, "regions", setup.Regions, "replicas of a global table, each of which pays for every write")
	flags.Float64Var(&setup.WritePrice, "write-price", setup.WritePrice, "dollars a million write units")
	flags.Float64Var(&setup.ReadPrice, "read-price", setup.ReadPrice, "dollars a million read units")
	a.Flag(flags, "ttl")
	a.Flag(flags, "output")
	return cmd
}

func (a *app) cost(setup dynamodb.Setup, e dynamodb.Estimate) error {
	var lines []costLine
	add := func(what string, l dynamodb.Line) {
		lines = append(lines, costLine{what, math.Round(l.Writes), math.Round(l.Reads), math.Round(l.Dollars*1e4) / 1e4})
	}
	add("renewals", e.Renew)
	if setup.Sessions > 0 {
		add("looks", e.Look)
	}
	add("hand-overs", e.Change)
	add("waiting", e.Wait)
	add("total", e.Total)
	if setup.Sessions > 0 {
		add("total if each lease renewed itself", e.PerHold)
	}
	if a.Output() != output.Table {
		return output.WriteList(a.Out, lines, a.Output() == output.Lines)
	}
	what, writes, reads, dollars := output.Column{Title: "A MONTH"}, output.Column{Title: "WRITE UNITS"}, output.Column{Title: "READ UNITS"}, output.Column{Title: "DOLLARS"}
	for _, l := range lines {
		what.Cells = append(what.Cells, l.What)
		writes.Cells = append(writes.Cells, grouped(l.Writes))
		reads.Cells = append(reads.Cells, grouped(l.Reads))
		dollars.Cells = append(dollars.Cells, strconv.FormatFloat(l.Dollars, 'f', 2, 64))
	}
	return output.WriteTable(a.Out, []output.Column{what, writes, reads, dollars}, output.Width(a.Out), nil)
}

// electionDollars is what election takes a month, if the store that is set is in DynamoDB: a
// session for each replica, all but one of which wait, and look at nothing.
func (a *app) electionDollars(p plan.Plan) (dollars float64, priced bool, err error) {
	url, _, err := a.StoreURL()
	if err != nil || url.Scheme != "dynamodb" {
		return 0, false, nil // what the store is matters for the price only
	}
	n, t := p.Input.Replicas, p.Input.Timing
	e, err := dynamodb.Cost(dynamodb.Setup{
		Leases: n, Sessions: n, TTL: t.TTL, Renewals: float64(t.TTL) / float64(t.Renew),
		Waiters: n - 1, PollMax: p.Input.Poll,
		// Of each of the n.
		Handovers: p.Changes() / float64(n) * float64(dynamodb.Month) / float64(plan.Year),
	})
	return math.Round((e.Total.Dollars-e.Look.Dollars*float64(n-1)/float64(n))*100) / 100, err == nil, err
}
