//go:build !lite

package setup

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/store/kubernetes"
)

func (a *app) initKubernetesCommand() *cobra.Command {
	name, namespace := "leasehold", "default"
	cmd := &cobra.Command{
		Use:   "kubernetes",
		Short: "Print the smallest Role for leases in Kubernetes",
		Long: "Write the Role that a program needs to keep leases in the namespace of --store, as YAML, with the command that binds it to\n" +
			"the program's account. It asks no cluster, and does nothing.",
		Example: "  leasehold init kubernetes --store k8s://jobs | kubectl apply -f -",
		Args:    cli.Want(),
		RunE: func(*cobra.Command, []string) error {
			if a.Values.Find("store").Source.Kind != config.Default {
				url, _, err := a.StoreURL()
				if err == nil {
					namespace, err = url.KubernetesNamespace(namespace)
				}
				if err != nil {
					return cli.Usage("--store: %w", err)
				}
			}
			_, err := fmt.Fprint(a.Out, kubernetes.Role(namespace, name))
			return err
		},
	}
	cmd.Flags().StringVar(&name, "role", name, "the name of the Role")
	return cmd
}
