package mutate

// Target is a package whose mutants are tried, and the tests that have to notice them.
type Target struct {
	Dir    string
	Files  []string // of them; all when nil
	Spare  []string // files that aren't mutated
	Suites []Suite  // in turn, until one notices
}

// Suite is tests of one package.
type Suite struct {
	Dir string
	Run string // the tests' pattern; "" for all
}

// simulated are the simulator's tests that take less than a second.
const simulated = "^(TestSeeds|TestFinding_S16_OutsidersInTheSimulator)$"

// Targets are the packages that safety depends on. The tests run with -short.
var Targets = []Target{
	{
		Dir: "internal/rules", Spare: []string{"state.go"}, // what the model check tells states apart by: no decision reads it
		Suites: []Suite{{Dir: "internal/rules"}, {"internal/sim", simulated}, {Dir: "internal/grants"}, {Dir: "lease"}},
	},
	{Dir: "internal/drive", Suites: []Suite{{"internal/sim", simulated}, {Dir: "internal/grants"}, {Dir: "lease"}}},
	{Dir: "fence", Suites: []Suite{{Dir: "fence"}}},
	{Dir: "lease", Suites: []Suite{{Dir: "lease"}}},
	{Dir: "lock", Suites: []Suite{{Dir: "lock"}}},
	{Dir: "election", Suites: []Suite{{Dir: "election"}}},
	{Dir: "internal/grants", Suites: []Suite{{Dir: "internal/grants"}}},
	{Dir: "store/file", Files: []string{"commit.go", "lane.go", "lock.go", "row.go", "sqlite.go", "life.go"}, Suites: []Suite{{Dir: "store/file"}}},
	{Dir: "store/consul", Files: []string{"errors.go"}, Suites: []Suite{{"store/consul", quick}}},
	{Dir: "store/dynamodb", Files: []string{"record.go"}, Suites: []Suite{{"store/dynamodb", quick}}},
	{Dir: "store/etcd", Files: []string{"explain.go", "outcome.go"}, Suites: []Suite{{"store/etcd", quick}}},
	{Dir: "store/kubernetes", Files: []string{"errors.go"}, Suites: []Suite{{"store/kubernetes", quick}}},
	{Dir: "store/nats", Files: []string{"explain.go"}, Suites: []Suite{{"store/nats", quick}}},
	{Dir: "store/postgres", Files: []string{"explain.go"}, Suites: []Suite{{"store/postgres", quick}}},
	{Dir: "store/redis", Files: []string{"explain.go"}, Suites: []Suite{{"store/redis", quick}}},
	{Dir: "store/zookeeper", Files: []string{"call.go"}, Suites: []Suite{{"store/zookeeper", quick}}},
}

// quick are the tests of an engine that say how its errors are told apart; the others need its server.
const quick = "Outcome|Explain|Error|Classif"
