package dynamodb

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// strong has two replicas and a witness; wide has three replicas.
var (
	strong = Plan{Table: "admiral-lease", Admiral: true, Replicas: []string{"us-east-2", "us-west-2"}, Witness: "us-east-1"}
	wide   = Plan{Table: "team-leases", Replicas: []string{"eu-west-1", "eu-west-2", "eu-central-1"}}
)

// The table of Admiral's leases is made, and one with another key under its name is refused.
func TestFinding_D5_AdmiralsTable(t *testing.T) {
	client := testClient(t, servers.DynamoDB(t, servers.Shared()).URL)
	name := "admiral-" + strings.ToLower(newVersion())
	if created, err := (Plan{Table: name, Admiral: true}).Create(t.Context(), client); err != nil || !created {
		t.Fatalf("created: %v, %v", created, err)
	}
	if created, err := (Plan{Table: name, Admiral: true}).Create(t.Context(), client); err != nil || created {
		t.Errorf("again: created: %v, %v", created, err)
	}
	if _, err := Create(t.Context(), client, name); err == nil || !strings.Contains(err.Error(), "leaseName S HASH") {
		t.Errorf("as one of Leasehold's own: %v", err)
	}
	if _, err := strong.Create(t.Context(), client); err == nil || !strings.Contains(err.Error(), "is made by a template") {
		t.Errorf("a global table: %v", err)
	}
}

// The commands of the AWS CLI for a global table, read as the CLI reads them: the table, a wait, and one update to strong mode that names
// every other Region.
func TestFinding_D5_StrongByTheCLI(t *testing.T) {
	for _, p := range []Plan{strong, wide} {
		text, err := p.Template(CLI)
		if err != nil {
			t.Fatal(err)
		}
		commands := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\\\n", " ")), "\n")
		const count = 3
		if len(commands) != count {
			t.Fatalf("%q", commands)
		}
		home := " --region " + p.Replicas[0] + " "
		for _, c := range commands {
			if !strings.Contains(c, home) {
				t.Errorf("%q isn't for%s", c, home)
			}
		}
		if got := parseCLI(t, strings.Fields(strings.Replace(commands[0], home, " ", 1))); !reflect.DeepEqual(got, p.input()) {
			t.Errorf("the CLI makes %+v, want %+v", got, p.input())
		}
		flags := map[string]string{}
		fields := strings.Fields(commands[2])
		for i := 3; i+1 < len(fields); i += 2 {
			flags[fields[i]] = strings.Trim(fields[i+1], "'")
		}
		var replicas []types.ReplicationGroupUpdate
		if err := json.Unmarshal([]byte(flags["--replica-updates"]), &replicas); err != nil {
			t.Fatal(err)
		}
		var regions []string
		for _, r := range replicas {
			regions = append(regions, *r.Create.RegionName)
		}
		if !reflect.DeepEqual(regions, p.Replicas[1:]) {
			t.Errorf("replicas %q, want %q", regions, p.Replicas[1:])
		}
		var witness []types.GlobalTableWitnessGroupUpdate
		if text := flags["--global-table-witness-updates"]; text != "" {
			if err := json.Unmarshal([]byte(text), &witness); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(witness) == 1 && *witness[0].Create.RegionName == p.Witness; got != (p.Witness != "") {
			t.Errorf("the witness: %+v, want %q", witness, p.Witness)
		}
		if flags["--multi-region-consistency"] != string(types.MultiRegionConsistencyStrong) {
			t.Errorf("%q", flags)
		}
	}
}

// Regions that can't have such a table are refused, by an error that names them.
func TestFinding_D5_WrongRegions(t *testing.T) {
	for _, c := range []struct {
		p    Plan
		want string
	}{
		{Plan{Table: "leases", Replicas: []string{"us-east-1", "us-east-2"}}, "three replicas, or two and a witness"},
		{Plan{Table: "leases", Replicas: []string{"us-east-1"}, Witness: "us-east-2"}, "three replicas"},
		{Plan{Table: "leases", Witness: "us-east-2"}, "three replicas"},
		{Plan{Table: "leases", Replicas: []string{"us-east-1", "us-east-1"}, Witness: "us-east-2"}, "us-east-1 is named twice"},
		{Plan{Table: "leases", Replicas: []string{"us-east-1", "us-east-2"}, Witness: "eu-west-1"}, "can't share a table"},
		{Plan{Table: "l", Replicas: []string{"us-east-1", "us-east-2"}, Witness: "us-west-2"}, "3 to 255"},
	} {
		if err := c.p.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.p, err, c.want)
		}
		if text, err := c.p.Template(CLI); err == nil {
			t.Errorf("%+v: %s", c.p, text)
		}
	}
}
