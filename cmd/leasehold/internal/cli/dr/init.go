//go:build !lite

package dr

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/pair"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store/dynamodb"
)

// The schemas of a pair's table.
const (
	schemaAdmiral = "admiral"
	schemaNative  = "native"
)

// initOptions are the flags of standby init.
type initOptions struct {
	config, kind, pod, schema string
	instances                 []string
	pair                      pair.Pair
}

func (a *app) standbyInitCommand() *cobra.Command {
	o := initOptions{schema: schemaAdmiral, pair: pair.Pair{Namespace: "default"}}
	cmd := &cobra.Command{
		Use:   "init --print KIND --instances POD=REGION,POD=REGION",
		Short: "Print what an active and a passive instance need: table, permissions, objects, alarms",
		Long: "Write what instances need that share a lease, and do nothing:\n\n" +
			"  terraform, cloudformation, cli   the table, a policy for each job, alarms of CloudWatch\n" +
			"  kubernetes, helm                 a Deployment for each instance with its configuration, or the chart's values for one\n" +
			"  prometheus, grafana              alerting rules, a dashboard\n\n" +
			"The name of the lease, its times, the table and the role are those of --config, if it is given. The table is Admiral's or, with\n" +
			"--schema native, one of Leasehold's own. It is in one Region, or with --replicas a global one in strong mode (MRSC): then the\n" +
			"instances are in Regions that have a replica. Several kinds of alarm need the CloudWatch agent, which puts what it scrapes\n" +
			"from /metrics into the namespace " + pair.Namespace + " with the dimensions lease and pod.",
		Example: "  leasehold standby init --print terraform --instances east=us-east-2,west=us-west-2 >dr.tf\n" +
			"  leasehold standby init --print kubernetes --config dr.yaml --instances east=us-east-2,west=us-west-2 --pod east | kubectl apply --server-side -f -\n" +
			"  leasehold standby init --print cli --instances east=us-east-2,west=us-west-2 --replicas us-east-2,us-west-2 --witness us-east-1",
		Args: cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.standbyInit(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.kind, "print", "", "what to write: "+strings.Join(pair.Kinds(), ", "))
	f.StringSliceVar(&o.instances, "instances", nil, "podIdentifier and Region of each instance: east=us-east-2,west=us-west-2")
	f.StringVar(&o.pod, "pod", "", "kubernetes, helm: this instance only")
	f.StringVar(&o.config, "config", "", "a configuration file, as Admiral has it")
	f.StringVar(&o.schema, "schema", o.schema, "of the table: "+schemaAdmiral+", or "+schemaNative+" for one of Leasehold's own")
	f.StringVar(&o.pair.Region, "region", "", "of a table in one Region (default: that of --config, or of the first instance)")
	f.StringSliceVar(&o.pair.Table.Replicas, "replicas", nil, "the Regions of a global table in strong mode")
	f.StringVar(&o.pair.Table.Witness, "witness", "", "a Region that is a witness of the table, in place of the third replica")
	f.StringVar(&o.pair.Namespace, "namespace", o.pair.Namespace, "of Kubernetes")
	return cmd
}

func (a *app) standbyInit(cmd *cobra.Command, o initOptions) error {
	if !slices.Contains(pair.Kinds(), o.kind) {
		return cli.Usage("--print %q: want %s", o.kind, strings.Join(pair.Kinds(), ", "))
	}
	p, err := o.read(cmd.Flags().Changed("region"))
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	text, err := p.Text(o.kind, o.pod)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	_, err = fmt.Fprint(a.Out, text)
	return err
}

// read is the pair that the flags and the file describe.
func (o initOptions) read(regionGiven bool) (pair.Pair, error) {
	const wait, threshold = 15 * time.Second, 3 // Admiral's
	p := o.pair
	p.Lease, p.Wait, p.Threshold = "prod", wait, threshold
	switch o.schema {
	case schemaAdmiral:
		p.Table.Admiral, p.Table.Table = true, admiral.DefaultTable
	case schemaNative:
		p.Table.Table = dynamodb.DefaultTable
	default:
		return p, fmt.Errorf("--schema %q: want %s or %s", o.schema, schemaAdmiral, schemaNative)
	}
	for _, text := range o.instances {
		name, region, ok := strings.Cut(text, "=")
		if !ok {
			return p, fmt.Errorf("--instances %q: want POD=REGION, such as east=us-east-2", text)
		}
		p.Pods = append(p.Pods, pair.Pod{Name: name, Region: region})
	}
	if len(p.Pods) == 0 {
		return p, fmt.Errorf("--instances is missing: podIdentifier and Region of each, such as east=us-east-2,west=us-west-2")
	}
	if o.config != "" {
		cfg, err := admiral.LoadConfig(o.config)
		if err != nil {
			return p, err
		}
		if cfg.Store != "" {
			return p, fmt.Errorf("%s: store %s: this prints what a table of DynamoDB needs; leasehold init prepares other stores", o.config, cfg.Store)
		}
		o.take(&p, cfg, regionGiven)
	}
	if p.Region == "" && !p.Table.Strong() {
		p.Region = p.Pods[0].Region
	}
	return p, nil
}

// take takes what the file says.
func (o initOptions) take(p *pair.Pair, cfg admiral.Config, regionGiven bool) {
	if cfg.LeaseName != "" {
		p.Lease = cfg.LeaseName
	}
	if cfg.WaitTime > 0 {
		p.Wait = cfg.WaitTime
	}
	if cfg.FailureThreshold > 0 {
		p.Threshold = cfg.FailureThreshold
	}
	if p.Table.Admiral {
		p.Table.Table, p.Role = cfg.TableName, cfg.Role
	}
	if !regionGiven && !p.Table.Strong() {
		p.Region = cfg.Region
	}
}
