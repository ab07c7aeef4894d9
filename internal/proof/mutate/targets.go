package mutate

// Target is a package whose mutants are tried, and the tests that have to notice them.
type Target struct {
	Dir    string
	Files  []string // of them; all when nil
	Spare  []string // files that aren't mutated
	Funcs  []string // functions of them, as in an Edit; all when nil
	Suites []Suite  // in turn, until one notices
	Note   string   // for the report
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
		// What the model check tells states apart by: no decision reads it.
		Dir: "internal/protocol", Spare: []string{"state.go"},
		Suites: []Suite{{Dir: "internal/protocol"}, {"internal/proof/sim", simulated}, {Dir: "internal/lessor"}, {Dir: "lease"}},
		Note:   "state.go is left out: the model check tells states apart by it, and no decision reads it.",
	},
	{Dir: "internal/drive", Suites: []Suite{{Dir: "internal/drive"}, {"internal/proof/sim", simulated}, {Dir: "internal/lessor"}, {Dir: "lease"}}},
	{Dir: "fence", Suites: []Suite{{Dir: "fence"}}},
	{Dir: "fence/filemarks", Suites: []Suite{{Dir: "fence/filemarks"}}},
	{Dir: "lease", Suites: []Suite{{Dir: "lease"}}},
	{Dir: "lock", Suites: []Suite{{Dir: "lock"}}},
	{Dir: "internal/roster", Suites: []Suite{{Dir: "lock"}}},
	{Dir: "election", Suites: []Suite{{Dir: "election"}}},
	{Dir: "internal/ballot", Suites: []Suite{{Dir: "election"}}},
	{Dir: "internal/lessor", Suites: []Suite{{Dir: "internal/lessor"}}, Note: "The tests of the server, which drive it, are not run."},
	{
		Dir: "store/file", Files: []string{"commit.go", "lane.go", "lock.go", "row.go", "sqlite.go", "life.go"}, Suites: []Suite{{Dir: "store/file"}},
		Note: "The way of a write only.",
	},
	{Dir: "store/consul", Files: []string{"errors.go"}, Funcs: []string{"leaderless", "refused", "Store.outcome"}, Suites: []Suite{{"store/consul", certain}}},
	{Dir: "store/dynamodb", Files: []string{"record.go"}, Funcs: []string{"Store.outcome"}, Suites: []Suite{{"store/dynamodb", certain}}},
	{
		Dir: "store/dynamodb/internal/table", Files: []string{"attempt.go", "fate.go", "write.go"}, Suites: []Suite{{Dir: "store/dynamodb/internal/table"}},
		Funcs: []string{
			"Table.do", "progress.unsent", "progress.local", "progress.trace", "progress.options", "code", "status", "throttled", "fateOf", "fateOfCode",
			"dialling", "Table.write", "Table.lost",
		},
	},
	{
		Dir: "store/etcd", Files: []string{"outcome.go"}, Suites: []Suite{{"store/etcd", certain}},
		Funcs: []string{"attempts.certain", "attempts.cause", "attempts.refused", "attempts.failed", "refused", "code", "because"},
	},
	{
		Dir: "store/kubernetes", Files: []string{"errors.go", "write.go"}, Suites: []Suite{{"store/kubernetes", "^(TestWhichErrorsAreCertain|TestWhatIsMissing)$"}},
		Funcs: []string{"unsent", "distrusted", "statusCode", "status", "isMissing", "unexpected", "isConflict", "Store.failed", "refused"},
	},
	{Dir: "store/nats", Files: []string{"write.go"}, Funcs: []string{"mismatch", "outcome", "refused"}, Suites: []Suite{{"store/nats", certain}}},
	{Dir: "store/postgres", Files: []string{"ask.go"}, Funcs: []string{"refused", "sqlstate"}, Suites: []Suite{{"store/postgres", certain}}},
	{Dir: "store/redis", Files: []string{"call.go", "write.go"}, Funcs: []string{"isRefusal", "first", "Store.outcome"}, Suites: []Suite{{"store/redis", certain}}},
	{Dir: "store/zookeeper", Files: []string{"call.go"}, Funcs: []string{"answered", "Store.outcome", "Store.readError"}, Suites: []Suite{{"store/zookeeper", certain}}},
}

// certain is an engine's test of how errors are told apart: those after which a write was certainly
// not made. It needs no server.
const certain = "^TestWhichErrorsAreCertain$"
