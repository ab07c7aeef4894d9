package rules

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/prometheus/prometheus/promql/parser"
)

// body is a configuration of Terraform's, as its own library reads it.
func body(t *testing.T, schema string) *hclsyntax.Body {
	t.Helper()
	file, diags := hclparse.NewParser().ParseHCL(read(t, schema+".terraform.tf"), schema+".tf")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	b, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		t.Fatalf("%T", file.Body)
	}
	return b
}

// TestTerraform: the configuration is HCL; every block's labels are its own; every reference leads to something that is declared; and the
// tables, policies and alarms are there.
func TestTerraform(t *testing.T) {
	for _, schema := range schemas {
		b := body(t, schema)
		declared, kinds := map[string]bool{}, map[string]int{}
		for _, block := range b.Blocks {
			switch block.Type {
			case "variable":
				declared["var."+block.Labels[0]] = true
			case "locals":
				for name := range block.Body.Attributes {
					declared["local."+name] = true
				}
			default:
				name := strings.Join(block.Labels, ".")
				if block.Type == "data" {
					name = "data." + name
				}
				if declared[name] {
					t.Errorf("%s: %s is declared twice", schema, name)
				}
				declared[name] = true
				kinds[block.Labels[0]]++
			}
		}
		walk(b, func(e hclsyntax.Expression) {
			for _, v := range e.Variables() {
				if name := target(v); !declared[name] {
					t.Errorf("%s: %s leads nowhere", schema, name)
				}
			}
		})
		if kinds["aws_dynamodb_table"] != 1 || kinds["aws_iam_policy"] != 5 || kinds["aws_iam_policy_document"] != 5 || kinds["aws_cloudwatch_metric_alarm"] < 7 {
			t.Errorf("%s: %v", schema, slices.Sorted(maps.Keys(kinds)))
		}
	}
}

// target is what a reference leads to: the first two steps of var and local, three of data, two of a resource.
func target(v hcl.Traversal) string {
	parts := []string{v.RootName()}
	steps := 2
	if v.RootName() == "data" {
		steps = 3
	}
	for _, step := range v[1:] {
		if attr, ok := step.(hcl.TraverseAttr); ok && len(parts) < steps {
			parts = append(parts, attr.Name)
		}
	}
	return strings.Join(parts, ".")
}

func walk(b *hclsyntax.Body, f func(hclsyntax.Expression)) {
	for name, a := range b.Attributes {
		if name != "type" { // of a variable
			f(a.Expr)
		}
	}
	for _, block := range b.Blocks {
		walk(block.Body, f)
	}
}

// TestTerraformAttributes: blocks of the resources have the attributes that the provider knows, and those that it wants.
func TestTerraformAttributes(t *testing.T) {
	known := map[string][]string{
		"aws_dynamodb_table":             {"name", "billing_mode", "hash_key", "deletion_protection_enabled"},
		"attribute":                      {"name", "type"},
		"replica":                        {"region_name", "consistency_mode", "deletion_protection_enabled"},
		"global_table_witness":           {"region_name"},
		"lifecycle":                      {"prevent_destroy"},
		"aws_iam_policy":                 {"name", "policy"},
		"aws_iam_policy_document":        {},
		"statement":                      {"actions", "resources"},
		"condition":                      {"test", "variable", "values"},
		"aws_cloudwatch_metric_alarm":    {"alarm_name", "alarm_description", "comparison_operator", "threshold", "evaluation_periods", "datapoints_to_alarm", "treat_missing_data", "alarm_actions", "ok_actions"},
		"aws_cloudwatch_metric_alarm/of": {"namespace", "metric_name", "period", "statistic", "dimensions"},
		"metric_query":                   {"id", "return_data"},
		"metric_query/of":                {"expression", "label"},
		"metric":                         {"namespace", "metric_name", "period", "stat", "dimensions"},
	}
	for _, schema := range schemas {
		for _, block := range body(t, schema).Blocks {
			if block.Type == "resource" || block.Type == "data" {
				attributes(t, schema, block.Labels[0], block.Body, known)
			}
		}
	}
}

func attributes(t *testing.T, schema, kind string, b *hclsyntax.Body, known map[string][]string) {
	t.Helper()
	wanted, ok := known[kind]
	if !ok {
		t.Errorf("%s: a block %s", schema, kind)
	}
	for _, name := range wanted {
		if b.Attributes[name] == nil {
			t.Errorf("%s: %s lacks %s", schema, kind, name)
		}
	}
	for name := range b.Attributes {
		if !slices.Contains(wanted, name) && !slices.Contains(known[kind+"/of"], name) {
			t.Errorf("%s: %s has %s", schema, kind, name)
		}
	}
	for _, block := range b.Blocks {
		attributes(t, schema, block.Type, block.Body, known)
	}
}

// TestDashboard: Prometheus reads each query of the dashboard, every panel has one, and no two lie on each other.
func TestDashboard(t *testing.T) {
	var board struct {
		Title      string `json:"title"`
		UID        string `json:"uid"`
		Templating struct {
			List []struct{ Name, Query string } `json:"list"`
		} `json:"templating"`
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			Type    string `json:"type"`
			GridPos struct{ X, Y, W, H int }
			Targets []struct {
				Expr, LegendFormat string
				Datasource         struct{ UID string }
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(read(t, "admiral.grafana.json"), &board); err != nil {
		t.Fatal(err)
	}
	if board.Title == "" || board.UID == "" || len(board.Templating.List) != 2 || len(board.Panels) < 8 {
		t.Errorf("%+v", board)
	}
	taken := map[[2]int]string{}
	for _, p := range board.Panels {
		if p.Title == "" || p.Type == "" || len(p.Targets) == 0 {
			t.Errorf("%+v", p)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q lies on %q, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(target.Expr, "$lease", "prod")); err != nil || target.Datasource.UID != "${datasource}" {
				t.Errorf("%s: %s: %v", p.Title, target.Expr, err)
			}
		}
	}
}
