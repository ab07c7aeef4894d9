package admiral

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leasehold/leasehold/store"
)

// Config is the configuration file of the state checker.
type Config struct {
	LeaseName        string // the name of the lease; one table may hold one for each environment
	PodIdentifier    string // names this instance, for people and for a planned switchover
	WaitTime         time.Duration
	FailureThreshold int
	TableName        string // of the table in DynamoDB
	Role             string // to assume before the table is used; "" for none
	Region           string // of the table

	HomeRegion string // the one Region in which everybody writes to a global table in eventual mode; "" for other tables
	PodRegion  string // where this instance runs, for people; Region by default
	Endpoint   string // of DynamoDB, when it isn't the Region's: a local one, for instance
	Store      string // URL of a Leasehold store, in place of a table
}

// The keys of the file. The last four are Leasehold's own.
var keys = []string{
	"leaseName", "podIdentifier", "waitTimeInSeconds", "failureThreshold", "tableName", "role", "region",
	"homeRegion", "podRegion", "endpoint", "store",
}

// section is the key under which Admiral reads all others.
const section = "dynamoDB"

// DefaultTable is the table that Admiral uses, whatever its configuration says.
const DefaultTable = "admiral-lease"

// TTL returns how long the lease stays held after its holder's last sign of life: WaitTime ×
// FailureThreshold.
func (c Config) TTL() time.Duration { return c.WaitTime * time.Duration(c.FailureThreshold) }

// Renew returns the time from one renewal to the next: WaitTime, as Admiral has it, or a third of
// the TTL if that is less.
func (c Config) Renew() time.Duration { return min(c.WaitTime, c.TTL()/3) }

// runsIn is where this instance runs, for people.
func (c Config) runsIn() string { return cmp.Or(c.PodRegion, c.Region) }

// LoadConfig reads a configuration file; see [ParseConfig].
func LoadConfig(path string) (Config, error) {
	if path == "" {
		return Config{}, errors.New("dr_state_store_config_path: the path of the configuration file is missing")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("the configuration file: %w", err)
	}
	c, err := ParseConfig(b)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ParseConfig reads YAML: the keys under dynamoDB, as Admiral has them, or at the top level, as a
// widely copied sample has them. An error names the key, and for a contradiction both places.
// Whether all that is needed is there is checked by the checker that uses it.
func ParseConfig(b []byte) (Config, error) {
	values, err := readKeys(b)
	if err != nil {
		return Config{}, err
	}
	c := Config{
		LeaseName: values["leaseName"].text, PodIdentifier: values["podIdentifier"].text, TableName: values["tableName"].text,
		Role: values["role"].text, Region: values["region"].text, HomeRegion: values["homeRegion"].text, PodRegion: values["podRegion"].text,
		Endpoint: values["endpoint"].text, Store: values["store"].text,
	}
	if c.TableName == "" {
		c.TableName = DefaultTable
	}
	wait, err := number(values, "waitTimeInSeconds", int(store.MaxTTL/time.Second))
	if err != nil {
		return Config{}, err
	}
	c.WaitTime = time.Duration(wait) * time.Second
	if c.FailureThreshold, err = number(values, "failureThreshold", 1_000_000); err != nil {
		return Config{}, err
	}
	return c, c.checkTimes()
}

// entry is the value of a key, and where it stands.
type entry struct {
	text string
	line int
}

func readKeys(b []byte) (map[string]entry, error) {
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, errEmpty
	} else if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is a second YAML document in the file: want one")
	}
	values := map[string]entry{}
	if err := readMapping(doc.Content[0], values, true); err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return nil, errEmpty
	}
	return values, nil
}

var errEmpty = errors.New("the configuration is empty: want dynamoDB: with leaseName, podIdentifier, waitTimeInSeconds and failureThreshold")

func readMapping(m *yaml.Node, values map[string]entry, top bool) error {
	if m.Kind != yaml.MappingNode {
		if m.Tag == "!!null" {
			return nil // the sample leaves dynamoDB: empty
		}
		return fmt.Errorf("line %d: want lines like `leaseName: prod`", m.Line)
	}
	var nested *yaml.Node
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		switch {
		case top && key.Value == section && nested == nil:
			nested = value
		case key.Value == section:
			return fmt.Errorf("line %d: %s: stands here a second time, or inside itself", key.Line, section)
		default:
			if err := readKey(key, value, values); err != nil {
				return err
			}
		}
	}
	if nested == nil {
		return nil
	}
	return readMapping(nested, values, false)
}

func readKey(key, value *yaml.Node, values map[string]entry) error {
	if !slices.Contains(keys, key.Value) {
		return fmt.Errorf("line %d: unknown key %q: known are %s, at the top level or under %s", key.Line, key.Value, strings.Join(keys, ", "), section)
	}
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if value.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: %s: want one plain value", key.Line, key.Value)
	}
	text := value.Value
	if value.Tag == "!!null" {
		text = ""
	}
	now := entry{text, key.Line}
	if before, twice := values[key.Value]; twice && before.text != text {
		if before.line > now.line { // the section is read last
			before, now = now, before
		}
		return fmt.Errorf("%s: line %d says %q and line %d says %q: which one?", key.Value, before.line, before.text, now.line, now.text)
	}
	values[key.Value] = now
	return nil
}

// number reads a whole number above 0; a key that isn't there is 0.
func number(values map[string]entry, key string, most int) (int, error) {
	v, ok := values[key]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(v.text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("line %d: %s %q: want a whole number from 1 to %d", v.line, key, v.text, most)
	}
	return n, nil
}

// checkTimes looks at how the two times go together, as far as they are there.
func (c Config) checkTimes() error {
	if c.WaitTime == 0 || c.FailureThreshold == 0 {
		return nil
	}
	if int64(c.FailureThreshold) > int64(store.MaxTTL/c.WaitTime) {
		return fmt.Errorf("waitTimeInSeconds %d × failureThreshold %d: want at most %d s in all, a year",
			c.WaitTime/time.Second, c.FailureThreshold, store.MaxTTL/time.Second)
	}
	return nil
}

// check looks for what the checker of that name needs.
func (c Config) check(checker string) error {
	missing := func(key string) error {
		return fmt.Errorf("%s is missing: the state checker %s needs it", key, checker)
	}
	switch {
	case c.LeaseName == "":
		return missing("leaseName")
	case c.PodIdentifier == "":
		return missing("podIdentifier")
	case c.WaitTime <= 0:
		return missing("waitTimeInSeconds")
	case c.FailureThreshold <= 0:
		return missing("failureThreshold")
	case c.PodIdentifier == SkipOwner:
		return fmt.Errorf("podIdentifier %s: that name is an operator's, who holds everyone passive with it", SkipOwner)
	case checker == DynamoDB && c.Store != "":
		return fmt.Errorf("store %q: the state checker %s keeps its lease in the table %s; name the checker %s, or take out store", c.Store, checker, c.TableName, Leasehold)
	}
	if err := checkNames(c); err != nil {
		return err
	}
	return c.checkTimes()
}
