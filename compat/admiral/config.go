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

	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/store"
)

// Config is the configuration file of the state checker.
type Config struct {
	LeaseName string // the name of the lease; one table may hold one for each environment
	// PodIdentifier names this instance, for people and for a planned switchover. The holder's id
	// is PodIdentifier/host/pid/random: two pods with the same PodIdentifier are two holders, and
	// at most one of them is active.
	PodIdentifier    string
	WaitTime         time.Duration
	FailureThreshold int
	TableName        string // of the table in DynamoDB
	Role             string // to assume before the table is used; "" for none
	Region           string // of the table

	// The one Region in which everybody writes to a global table in eventual mode; "" for other
	// tables.
	HomeRegion string
	PodRegion  string // where this instance runs, for people; Region by default
	Endpoint   string // of DynamoDB, when it isn't the Region's: a local one, for instance
	Store      string // URL of a Leasehold store, in place of a table

	// Poll is the longest pause between two looks at the table: 7/8 of WaitTime by default, so that
	// a pair with a WaitTime of 15 s reads 16 times a minute at most. It is in whole seconds.
	Poll time.Duration

	// Others are the other sections of the file, which Admiral reads for other purposes and the
	// state checker passes over: "ignoreIdentityList, database". For people; "" for none.
	Others string
}

// The keys of the file. The last five are Leasehold's own.
var keys = []string{
	"leaseName", "podIdentifier", "waitTimeInSeconds", "failureThreshold", "tableName", "role", "region",
	"homeRegion", "podRegion", "endpoint", "store", "pollSeconds",
}

// section is the key under which Admiral reads all others.
const section = "dynamoDB"

// What Admiral has in its store, whatever its configuration says.
const (
	// DefaultTable is the table.
	DefaultTable = "admiral-lease"
	// SkipOwner is the owner of a row by which an operator holds every instance passive; see
	// [Operator.Hold].
	SkipOwner = pairs.SkipOwner
)

// TTL returns how long the lease stays held after its holder's last sign of life: WaitTime ×
// FailureThreshold.
func (c Config) TTL() time.Duration { return c.WaitTime * time.Duration(c.FailureThreshold) }

// Renew returns the time from one renewal to the next: WaitTime, as Admiral has it, or a third of
// the TTL if that is less.
func (c Config) Renew() time.Duration { return min(c.WaitTime, c.TTL()/3) }

// Differences returns what next says otherwise, as "waitTimeInSeconds 15 → 20" for each key, in the
// order of the documentation. Sections that the state checker passes over don't count.
func (c Config) Differences(next Config) []string {
	var all []string
	before, after := c.texts(), next.texts()
	for i, key := range keys {
		if before[i] != after[i] {
			all = append(all, fmt.Sprintf("%s %s → %s", key, cmp.Or(before[i], "nothing"), cmp.Or(after[i], "nothing")))
		}
	}
	return all
}

// texts are the values in the order of keys.
func (c Config) texts() []string {
	seconds := func(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
	return []string{
		c.LeaseName, c.PodIdentifier, seconds(c.WaitTime), strconv.Itoa(c.FailureThreshold), c.TableName, c.Role, c.Region,
		c.HomeRegion, c.PodRegion, c.Endpoint, c.Store, seconds(c.Poll),
	}
}

// Looks is how long an instance may take to see a change of the table, and 0 where the store
// pushes: Poll, or its default.
func (c Config) Looks(checker string) time.Duration {
	if !strings.EqualFold(checker, DynamoDB) {
		return 0
	}
	return cmp.Or(c.Poll, c.WaitTime*7/8)
}

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
// widely copied sample has them. Other sections of Admiral's file are passed over, and named in
// [Config].Others; an unknown key beside ours, or under dynamoDB, is an error. An error names the
// key, and for a contradiction both places. Whether all that is needed is there is checked by the
// checker that uses it.
func ParseConfig(b []byte) (Config, error) {
	values, others, err := readKeys(b)
	if err != nil {
		return Config{}, err
	}
	c := Config{
		LeaseName: values["leaseName"].text, PodIdentifier: values["podIdentifier"].text, TableName: values["tableName"].text,
		Role: values["role"].text, Region: values["region"].text, HomeRegion: values["homeRegion"].text, PodRegion: values["podRegion"].text,
		Endpoint: values["endpoint"].text, Store: values["store"].text, Others: strings.Join(others, ", "),
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
	poll, err := number(values, "pollSeconds", int(time.Hour/time.Second))
	if err != nil {
		return Config{}, err
	}
	c.Poll = time.Duration(poll) * time.Second
	return c, c.checkTimes()
}

// entry is the value of a key, and where it stands.
type entry struct {
	text string
	line int
}

// readKeys returns the values by key, and the names of the sections that are others'.
func readKeys(b []byte) (values map[string]entry, others []string, err error) {
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil, errEmpty
	} else if err != nil {
		return nil, nil, fmt.Errorf("not YAML: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("there is a second YAML document in the file: want one")
	}
	f := file{values: map[string]entry{}}
	switch err := f.readTop(doc.Content[0]); {
	case err != nil:
		return nil, nil, err
	case len(f.values) == 0 && len(f.others) > 0:
		return nil, nil, fmt.Errorf("%w; the file has %s, which are read by Admiral alone", errEmpty, strings.Join(f.others, ", "))
	case len(f.values) == 0:
		return nil, nil, errEmpty
	}
	return f.values, f.others, nil
}

var errEmpty = errors.New("the configuration is empty: want dynamoDB: with leaseName, podIdentifier, waitTimeInSeconds and failureThreshold")

// file is what was read of the file.
type file struct {
	values map[string]entry
	others []string // sections that the state checker doesn't read
}

// readTop reads the keys that stand at the top, and then the section.
func (f *file) readTop(m *yaml.Node) error {
	var nested *yaml.Node
	err := eachKey(m, func(key, value *yaml.Node) error {
		switch {
		case key.Value == section && nested == nil:
			nested = value
		case key.Value == section:
			return fmt.Errorf("line %d: %s: stands here a second time", key.Line, section)
		case strings.EqualFold(key.Value, section):
			return fmt.Errorf("line %d: %s: Admiral writes %s, and reads no other spelling", key.Line, key.Value, section)
		case resolved(value).Kind != yaml.ScalarNode && !slices.Contains(keys, key.Value):
			f.others = append(f.others, key.Value)
		default:
			return f.readKey(key, value)
		}
		return nil
	})
	if err != nil || nested == nil {
		return err
	}
	return eachKey(resolved(nested), func(key, value *yaml.Node) error {
		if key.Value == section {
			return fmt.Errorf("line %d: %s: stands here a second time, inside itself", key.Line, section)
		}
		return f.readKey(key, value)
	})
}

// eachKey calls do for each key of a mapping. The sample leaves dynamoDB: empty, which is one
// without keys.
func eachKey(m *yaml.Node, do func(key, value *yaml.Node) error) error {
	if m.Tag == "!!null" {
		return nil
	}
	if m.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want lines like `leaseName: prod`", m.Line)
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if err := do(m.Content[i], m.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// resolved is the node that an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func (f *file) readKey(key, value *yaml.Node) error {
	if !slices.Contains(keys, key.Value) {
		return fmt.Errorf("line %d: unknown key %q: known are %s, at the top level or under %s", key.Line, key.Value, strings.Join(keys, ", "), section)
	}
	if value = resolved(value); value.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: %s: want one plain value", key.Line, key.Value)
	}
	text := value.Value
	if value.Tag == "!!null" {
		text = ""
	}
	now := entry{text, key.Line}
	if before, twice := f.values[key.Value]; twice && before.text != text {
		if before.line > now.line { // the section is read last
			before, now = now, before
		}
		return fmt.Errorf("%s: line %d says %q and line %d says %q: which one?", key.Value, before.line, before.text, now.line, now.text)
	}
	f.values[key.Value] = now
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
