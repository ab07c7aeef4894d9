//go:build lite

package plan

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/plan"
)

func (a *app) costCommand() *cobra.Command {
	return cli.Lacking("cost", "Estimate what leases on DynamoDB cost a month", cli.NotInLite)
}

// electionDollars knows no prices: there is no store in this build that has any.
func (a *app) electionDollars(plan.Plan) (dollars float64, priced bool, err error) {
	return 0, false, nil
}
