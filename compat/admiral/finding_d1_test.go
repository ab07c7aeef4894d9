package admiral_test

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/compat/admiral"
)

// The sections that Admiral's own file has beside the state checker's: a list of identities with a table of its own, and the
// database of what it syncs.
const (
	identities = `ignoreIdentityList:
  stateCheckerPeriodInSeconds: 60
  dynamoDB:
    region: "us-east-2"
    role: "arn:aws:iam::1:role/reads"
    tableName: "ignore-identity-state"
    clusterEnvironment: "dev"
`
	database = `database:
  region: "us-west-2"
  role: "arn:aws:iam::1:role/writes"
  tableName: workload-data
`
)

// Each of the files that upstream's own tests enable its state checker with is accepted, and the state checker's section is all
// that counts: upstream leaves out each key of the other sections in turn, or the section.
func TestFinding_D1_AdmiralsOwnFiles(t *testing.T) {
	want, err := admiral.ParseConfig([]byte(nested))
	if err != nil {
		t.Fatal(err)
	}
	without := func(key string) string {
		var lines []string
		for line := range strings.Lines(identities) {
			if !strings.Contains(line, key) {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	for others, text := range map[string]string{
		"":                             nested,
		"ignoreIdentityList, database": identities + nested + database,
		"ignoreIdentityList":           identities + nested,
		"database":                     nested + database,
		"ignoreIdentityList ":          without("region") + nested,
		"ignoreIdentityList  ":         without("role") + nested,
		"ignoreIdentityList   ":        without("tableName") + nested,
		"ignoreIdentityList    ":       without("clusterEnvironment") + nested,
		"ignoreIdentityList     ":      "ignoreIdentityList:\n  stateCheckerPeriodInSeconds: 60\n" + nested,
		"clusters":                     "clusters: [a, b]\n" + nested, // a list is nobody's typing error either
	} {
		c, err := admiral.ParseConfig([]byte(text))
		if err != nil || c.Others != strings.TrimSpace(others) {
			t.Errorf("%s: %q was passed over, %v", others, c.Others, err)
		}
		if c.Others = ""; c != want {
			t.Errorf("%s: %+v, want %+v", others, c, want)
		}
	}
}

// A typing error is not another section.
func TestFinding_D1_ATypingErrorIsNoSection(t *testing.T) {
	for text, wants := range map[string]string{
		identities + nested + "database:\n  x: 1\n    y: 2\n":           "not YAML",
		identities + strings.Replace(nested, "dynamoDB", "dynamodb", 1): "line 8 dynamodb dynamoDB spelling",
		identities + database:            "empty leaseName ignoreIdentityList, database",
		identities + nested + "  x: {}":  `line 16 unknown "x"`,
		identities + nested + "role: {}": "line 16 role plain",
		nested + "leasename: prod":       `line 9 unknown "leasename"`,
	} {
		_, err := admiral.ParseConfig([]byte(text))
		for want := range strings.FieldsSeq(wants) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %s is not in: %v", text, want, err)
			}
		}
	}
}
