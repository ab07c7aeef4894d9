//go:build !lite

package setup

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/engines"
	"github.com/leasehold/leasehold/store/kubernetes"
)

// manifests are what the charts in deploy/charts make of their default values.
//
//go:embed manifests/*.yaml
var manifests embed.FS

// printAll has all charts printed.
const printAll = "all"

func (a *app) initKubernetesCommand() *cobra.Command {
	name, namespace, chart := "leasehold", "default", ""
	cmd := &cobra.Command{
		Use:   "kubernetes",
		Short: "Print the smallest Role for leases in Kubernetes, or all that the Helm charts make",
		Long: "Write the Role that a program needs to keep leases in the namespace of --store, as YAML, with the command that binds it to\n" +
			"the program's account. It asks no cluster, and does nothing.\n\n" +
			"With --print, write what the Helm charts make of their default values: the lock server (leasehold), a Deployment with elect as a\n" +
			"sidecar (leasehold-elect), and an active and a passive instance (leasehold-standby). See docs/kubernetes.md.",
		Example: "  leasehold init kubernetes --store k8s://jobs | kubectl apply -f -\n" +
			"  leasehold init kubernetes --store k8s://jobs --print=leasehold | kubectl apply --server-side -f -",
		Args: cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.Values.Find("store").Source.Kind != config.Default {
				url, _, err := engines.URL(a.App)
				if err == nil {
					namespace, err = url.KubernetesNamespace(namespace)
				}
				if err != nil {
					return cli.Usage("--store: %w", err)
				}
			}
			if chart == "" {
				_, err := fmt.Fprint(a.Out, kubernetes.Role(namespace, name))
				return err
			}
			if cmd.Flags().Changed("role") {
				return cli.Usage("--role %s and --print: the charts name their Roles; want one of them", name)
			}
			return a.printCharts(chart, namespace)
		},
	}
	cmd.Flags().StringVar(&name, "role", name, "the name of the Role")
	cmd.Flags().StringVar(&chart, "print", "", "write what a chart makes instead: leasehold, leasehold-elect, leasehold-standby, or all of them")
	cmd.Flags().Lookup("print").NoOptDefVal = printAll
	return cmd
}

// printCharts writes what one chart, or each of them, makes in a namespace.
func (a *app) printCharts(chart, namespace string) error {
	files, err := fs.Glob(manifests, "manifests/*.yaml")
	if err != nil {
		return err
	}
	var known, texts []string
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".yaml")
		known = append(known, name)
		if chart != printAll && chart != name {
			continue
		}
		text, err := manifests.ReadFile(file)
		if err != nil {
			return err
		}
		texts = append(texts, strings.ReplaceAll(string(text), "{namespace}", namespace))
	}
	if len(texts) == 0 {
		return cli.Usage("--print=%s: want %s, or %s", chart, strings.Join(known, ", "), printAll)
	}
	_, err = fmt.Fprint(a.Out, strings.Join(texts, "---\n"))
	return err
}
