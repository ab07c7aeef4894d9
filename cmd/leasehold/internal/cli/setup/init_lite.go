//go:build lite

package setup

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

func (a *app) initDynamoDBCommand() *cobra.Command {
	return cli.Lacking("dynamodb", "Make a DynamoDB table for leases", cli.NotInLite)
}

func (a *app) initKubernetesCommand() *cobra.Command {
	return cli.Lacking("kubernetes", "Print the smallest Role for leases in Kubernetes", cli.NotInLite)
}
