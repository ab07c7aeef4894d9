package admiral_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"

	"context"
)

const nested = `dynamoDB:
  leaseName: prod
  podIdentifier: east
  waitTimeInSeconds: 15
  failureThreshold: 3
  tableName: admiral-lease
  role: arn:aws:iam::1:role/dr
  region: us-east-2
`

// ours are the keys that Admiral doesn't have.
const ours = "  homeRegion: us-east-2\n  podRegion: us-east-1\n  endpoint: http://127.0.0.1:8000\n  store: file:x\n"

// flat is the sample that is widely copied: the section is there and empty.
const flat = `dynamoDB:
leaseName: prod
podIdentifier: east
waitTimeInSeconds: 15
failureThreshold: 3
tableName: "admiral-lease"
role: "arn:aws:iam::1:role/dr"
region: "us-east-2"
`

func TestBothShapes(t *testing.T) {
	want := admiral.Config{
		LeaseName: "prod", PodIdentifier: "east", WaitTime: 15 * time.Second, FailureThreshold: 3, TableName: "admiral-lease",
		Role: "arn:aws:iam::1:role/dr", Region: "us-east-2",
	}
	for name, text := range map[string]string{
		"nested": nested, "flat": flat, "flat without the section": strings.TrimPrefix(flat, "dynamoDB:\n"),
		"both, and equal": nested + "leaseName: prod\n",
		"no table":        strings.Replace(nested, "  tableName: admiral-lease\n", "", 1),
		"tableName empty": strings.Replace(flat, `"admiral-lease"`, "", 1),
	} {
		c, err := admiral.ParseConfig([]byte(text))
		if err != nil || c != want {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	if c, err := admiral.ParseConfig([]byte(nested + ours)); err != nil ||
		c.HomeRegion != "us-east-2" || c.PodRegion != "us-east-1" || c.Endpoint != "http://127.0.0.1:8000" || c.Store != "file:x" {
		t.Errorf("%+v, %v", c, err)
	}
	if want.TTL() != 45*time.Second || want.Renew() != 15*time.Second {
		t.Errorf("TTL %v, renewed every %v", want.TTL(), want.Renew())
	}
	want.FailureThreshold = 10
	if want.Renew() != 15*time.Second {
		t.Errorf("renewed every %v with a threshold of 10", want.Renew())
	}
}

// Each key counts, and each is named.
func TestDifferences(t *testing.T) {
	before, err := admiral.ParseConfig([]byte(nested + ours))
	if err != nil {
		t.Fatal(err)
	}
	if got := before.Differences(before); len(got) != 0 {
		t.Errorf("%q", got)
	}
	after := before
	after.LeaseName, after.PodIdentifier, after.WaitTime, after.FailureThreshold = "a", "b", time.Second, 9
	after.TableName, after.Role, after.Region, after.HomeRegion, after.PodRegion, after.Endpoint, after.Store = "c", "", "e", "f", "g", "h", "i"
	after.Others, after.Poll = "database", 7*time.Second
	want := "leaseName prod → a, podIdentifier east → b, waitTimeInSeconds 15 → 1, failureThreshold 3 → 9, tableName admiral-lease → c, " +
		"role arn:aws:iam::1:role/dr → nothing, region us-east-2 → e, homeRegion us-east-2 → f, podRegion us-east-1 → g, " +
		"endpoint http://127.0.0.1:8000 → h, store file:x → i, pollSeconds 0 → 7"
	if got := strings.Join(before.Differences(after), ", "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestConfigErrorsNameTheKey(t *testing.T) {
	for text, wants := range map[string]string{
		"":                                       "empty leaseName",
		"# nothing\n":                            "empty",
		"dynamoDB:\n":                            "empty",
		"just words":                             "line 1",
		"a: b: c":                                "not YAML",
		"---\na: b\n---\nc: d\n":                 "second",
		nested + "leaseName: stage\n":            `leaseName "prod" "stage" line 2 line 9`,
		nested + "leasename: prod\n":             `unknown "leasename" line 9 leaseName`,
		"dynamoDB:\n  dynamoDB:\n    role: x\n":  "line 2 dynamoDB second",
		"dynamoDB: {}\nx: 1\n":                   `unknown "x"`,
		"leaseName: [a]\n":                       "line 1 leaseName plain",
		"waitTimeInSeconds: 15s\n":               `waitTimeInSeconds "15s" whole`,
		"waitTimeInSeconds: 0\n":                 "waitTimeInSeconds from 1",
		"pollSeconds: 3601\n":                    "pollSeconds from 1 to 3600",
		"failureThreshold: -3\n":                 "failureThreshold",
		"failureThreshold: 1.5\n":                "failureThreshold",
		"waitTimeInSeconds: 99999999999999999\n": "waitTimeInSeconds",
		"waitTimeInSeconds: 31536000\nfailureThreshold: 2\n": "waitTimeInSeconds failureThreshold year",
	} {
		_, err := admiral.ParseConfig([]byte(text))
		for want := range strings.FieldsSeq(wants) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %s is not in: %v", text, want, err)
			}
		}
	}
}

func TestLoadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dr.yaml")
	if _, err := admiral.LoadConfig(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if _, err := admiral.LoadConfig(""); err == nil || !strings.Contains(err.Error(), "dr_state_store_config_path") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(path, []byte("leaseNam: x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := admiral.LoadConfig(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "leaseNam") {
		t.Errorf("%v", err)
	}
}

// TestWhatACheckerNeeds: each key that is missing or unfit is named.
func TestWhatACheckerNeeds(t *testing.T) {
	open := func(context.Context) (store.Store, error) { return inMemory(nil, admiral.Config{}) } //nolint:staticcheck // never called
	for want, spoil := range map[string]func(*admiral.Config, *admiral.Options){
		"leaseName is missing":         func(c *admiral.Config, _ *admiral.Options) { c.LeaseName = "" },
		"podIdentifier is missing":     func(c *admiral.Config, _ *admiral.Options) { c.PodIdentifier = "" },
		"waitTimeInSeconds is missing": func(c *admiral.Config, _ *admiral.Options) { c.WaitTime = 0 },
		"failureThreshold is missing":  func(c *admiral.Config, _ *admiral.Options) { c.FailureThreshold = 0 },
		`leaseName ".x"`:               func(c *admiral.Config, _ *admiral.Options) { c.LeaseName = ".x" },
		`podIdentifier "a/b"`:          func(c *admiral.Config, _ *admiral.Options) { c.PodIdentifier = "a/b" },
		"podIdentifier SKIP-LEASE-POD": func(c *admiral.Config, _ *admiral.Options) { c.PodIdentifier = admiral.SkipOwner },
		"early 30s is too long":        func(_ *admiral.Config, o *admiral.Options) { o.Early = 30 * time.Second },
		"warm-up -1s":                  func(_ *admiral.Config, o *admiral.Options) { o.WarmUp = -time.Second },
		"renewal every":                func(_ *admiral.Config, o *admiral.Options) { o.Renew = ttl },
	} {
		c, o := config("a"), admiral.Options{}
		spoil(&c, &o)
		if _, err := admiral.New(open, c, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in: %v", want, err)
		}
	}
	c := config("a")
	c.Store = "file:x"
	if _, err := admiral.Checkers().New(admiral.DynamoDB, admiral.Params{Config: c, Table: inMemory}); err == nil || !strings.Contains(err.Error(), "store") {
		t.Errorf("a table and a store: %v", err)
	}
}
