package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/proof/seeded"
	"github.com/leasehold/leasehold/internal/proof/soak/resources"
	"github.com/leasehold/leasehold/store"
)

// config is how a run goes.
type config struct {
	Procs    int
	Commands int // supervisors, `leasehold run`, beside the workers
	Names    int
	Duration time.Duration
	TTL      time.Duration
	Seed     uint64
	Engine   string   // of the store: file, etcd or postgres
	Store    string   // a file; "" is one in a folder of the run's own
	Kinds    []string // of guarded resources beside the guarded files
	Bug      string
	Tools    string // a folder with the programs of supervisors and families; "" has them built
	Dir      string // where the run makes its folder; "" is the system's place for such
}

// The seeded bugs beside those of package rules.
const (
	bugGuard = "guard" // the guarded file takes any token
	bugCheck = "check" // holders don't call Check
	bugGroup = "group" // supervisors end process groups, and not what has left them
	// Every request to a guarded resource bears one token, as where there are none.
	bugUnfenced = "unfenced"
)

func parseConfig(args []string, errs io.Writer) (config, error) {
	var c config
	fs := flag.NewFlagSet("soak", flag.ContinueOnError)
	fs.SetOutput(errs)
	fs.IntVar(&c.Procs, "procs", 50, "how many processes")
	fs.IntVar(&c.Commands, "commands", 8, "how many processes of `leasehold run` beside them, two for each name of their own")
	fs.IntVar(&c.Names, "names", 5, "how many names they share")
	fs.DurationVar(&c.Duration, "duration", 5*time.Minute, "how long faults strike")
	fs.DurationVar(&c.TTL, "ttl", 2*time.Second, "of every lease; processes are stopped for up to three times as long")
	fs.Uint64Var(&c.Seed, "seed", 0, "of the faults; 0 draws one")
	fs.StringVar(&c.Engine, "engine", onFile, "of the store: "+strings.Join(engines, ", ")+"; servers are started for it: three of etcd, a primary and a synchronous standby of PostgreSQL")
	fs.StringVar(&c.Store, "store", "", "the store's file; a new one by default")
	fs.StringVar(&c.Bug, "bug", "", "a seeded bug, to see that it is found")
	kinds := fs.String("resources", "all", "kinds of guarded resources, with commas: all, none, or of "+strings.Join(kindNames(), ", "))
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if err := c.setKinds(*kinds); err != nil {
		return c, err
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64N(1_000_000) + 1
	}
	switch {
	case fs.NArg() > 0:
		return c, fmt.Errorf("argument %q: want flags only", fs.Arg(0))
	case !slices.Contains(engines, c.Engine):
		return c, fmt.Errorf("-engine %q: want one of %s", c.Engine, strings.Join(engines, ", "))
	case c.Engine != onFile && c.Store != "":
		return c, fmt.Errorf("-store %s: only the file engine has a file", c.Store)
	case c.Procs < 2:
		return c, fmt.Errorf("-procs %d: want at least 2", c.Procs)
	case c.Commands < 0:
		return c, fmt.Errorf("-commands %d: want none, or some", c.Commands)
	case c.Bug == bugGroup && c.Commands == 0:
		return c, fmt.Errorf("-bug %s: want -commands", c.Bug)
	case c.Names < 1:
		return c, fmt.Errorf("-names %d: want at least 1", c.Names)
	case c.TTL < 500*time.Millisecond || c.TTL > store.MaxTTL:
		return c, fmt.Errorf("-ttl %v: want at least 500ms: with less, a busy machine stops processes for as long as we do", c.TTL)
	case c.Bug != "" && !slices.Contains(ownBugs, c.Bug) && !slices.Contains(seeded.Rules, seeded.Rule(c.Bug)):
		return c, fmt.Errorf("-bug %q: want one of %v or of %v", c.Bug, ownBugs, seeded.Rules)
	}
	return c, switchOn(c.Bug)
}

// The engines that a run can be on.
const (
	onFile     = "file"
	onEtcd     = "etcd"
	onPostgres = "postgres"
)

var engines = []string{onFile, onEtcd, onPostgres}

// ownBugs are those that every build can seed.
var ownBugs = []string{bugGuard, bugCheck, bugGroup, bugUnfenced}

// perJob is how many supervisors want one name.
const perJob = 2

// familyTTL is the TTL of what families run under. It is longer than that of the workers:
// docs/command.md says what a busy machine does to a short one.
func (c config) familyTTL() time.Duration { return max(2*c.TTL, 2*time.Second) }

func kindNames() (all []string) {
	for _, k := range resources.Kinds {
		all = append(all, k.Name)
	}
	return all
}

func (c *config) setKinds(text string) error {
	switch text {
	case "all":
		c.Kinds = kindNames()
	case "none":
	default:
		c.Kinds = strings.Split(text, ",")
	}
	for i, k := range c.Kinds {
		if !slices.Contains(kindNames(), k) || slices.Contains(c.Kinds[:i], k) {
			return fmt.Errorf("-resources %s: %q: want all, none, or some of %s, each once", text, k, strings.Join(kindNames(), ", "))
		}
	}
	return nil
}

// name returns the i-th shared name.
func name(i int) string { return fmt.Sprintf("name-%d", i) }

// workerEnv makes a process a worker; its value is a workerConfig in JSON.
const workerEnv = "LEASEHOLD_SOAK_WORKER"

// workerConfig is what a worker has to know.
type workerConfig struct {
	Dir    string // of the guarded files
	Engine string
	Store  string
	Slot   int
	Proc   int // of this process; each has its own
	Names  int
	TTL    time.Duration
	Seed   uint64
	Bug    string

	Resources map[string]string // addresses of guarded resources, by kind
}

func (c workerConfig) encode() (string, error) {
	b, err := json.Marshal(c)
	return string(b), err
}
