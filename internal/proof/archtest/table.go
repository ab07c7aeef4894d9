package archtest

// Module is the module path that every package of the project begins with.
const Module = "github.com/leasehold/leasehold"

// Floor is how high up in the house a package is.
type Floor int

// The floors, from the ground up.
const (
	F0    Floor = iota // the contract, tokens, time
	F1                 // engines, and what guards resources
	Rules              // the decisions of the lease, which know no engine
	Drive              // what carries them out, for the lease, the server and the proofs
	F2                 // the lease
	F3                 // primitives made of leases
	F4                 // what serves them to others
	F5                 // the command, the only place that knows all engines
	Outer              // examples and proofs: nothing imports them
)

func (f Floor) String() string {
	return [...]string{"F0", "F1", "between F1 and F2", "between the rules and F2", "F2", "F3", "F4", "F5", "outside the floors"}[f]
}

// Row says where a package stands and what it may import beyond the standard library and the floors
// below it.
type Row struct {
	// From the root; "x/..." stands for x and all below it, unless a row says more precisely.
	Dir    string
	Floor  Floor
	Engine bool     // it keeps records: nobody but F5 and Outer imports it
	Tests  bool     // it is made for tests: nobody else imports it
	Libs   []string // libraries of others that it may use; "*" is any
	May    []string // packages of ours that it may import though they are not on a floor below
	Only   []string // if set, all that it may import: std is the whole standard library
	Never  []string // what it must not call: "time.Now"
	Why    string   // the reason for Libs, May, Only and Never
}

const x = "golang.org/x"

// holds are the calls by which protocol.Hold is made: only internal/drive drives one.
var holds = []string{"internal/protocol.New", "internal/protocol.NewSession", "internal/protocol.Resume", "internal/protocol.Named"}

// Table is the house.
var Table = []Row{
	{Dir: ".", Floor: Outer, Only: []string{}, Why: "it is a map of the packages, without code"},
	{Dir: "clock", Floor: F0, Libs: []string{x}, Why: "CLOCK_BOOTTIME comes through x/sys"},
	{Dir: "clock/clocktest", Floor: F0, Tests: true, May: []string{"clock"}, Only: []string{"std", "clock"}, Why: "the clock of a node in a test"},
	{
		Dir: "fence", Floor: F0, Only: []string{"std"},
		Why: "a guarded resource links fence and nothing else",
	},
	{
		Dir: "internal/httpwrite", Floor: F0, Only: []string{"std"},
		Why: "what reads and what writes is one rule, for the fence of handlers and for the gate",
	},
	{Dir: "internal/fileurl", Floor: F0, Only: []string{"std"}, Why: "the command reads a URL before any engine is initialised"},
	{Dir: "store", Floor: F0, May: []string{"fence"}, Why: "a record carries a token"},
	{
		Dir: "store/driver", Floor: F0, Only: []string{"std", "fence", "store"}, May: []string{"fence", "store"},
		Why: "what engines are written with, and what siblings ask of them; it brings nothing into the graph of an engine",
	},
	{
		Dir: "internal/lockstep/...", Floor: F0, Only: []string{},
		Why: "it has no code: modules of two minor versions fail for want of it",
	},
	{
		Dir: "flake", Floor: F0, Only: []string{"std"},
		Why: "a program that only makes ids links nothing else; it is told the time, and its window, by whoever knows them",
	},

	{
		Dir: "internal/enginekit/notify", Floor: F0, May: []string{"clock", "store"},
		Why: "it serves the Waits of engines, below them, whose servers tell of changes unreliably",
	},
	{
		Dir: "internal/enginekit/watcher", Floor: F0, May: []string{"store", "store/driver", "clock"},
		Why: "it serves the Waits of engines, below them, whose servers tell every change with its record",
	},
	{
		Dir: "internal/enginekit/inspect", Floor: F0, May: []string{"store", "store/driver", "clock"},
		Why: "what the inspections of engines, below them, have in common",
	},
	{
		Dir: "internal/tlsfiles", Floor: F0, Only: []string{"std"},
		Why: "certificates that are read again when they change, for stores, the server and the gate",
	},
	{
		Dir: "internal/enginekit/batch", Floor: F0, May: []string{"store"},
		Why: "it has the writes of engines, below them, sent together",
	},
	{
		Dir: "internal/enginekit/outcome", Floor: F0, May: []string{"store", "store/driver"},
		Why: "engines, and the client of the lock server, keep their writes of unknown outcome in it",
	},

	{
		Dir: "internal/roster", Floor: F2, May: []string{"lease"},
		Why: "lock writes it; the server, the command and a sweep read it",
	},
	{Dir: "internal/shardmap", Floor: F2, Why: "shard writes it, and the command reads it"},
	{Dir: "internal/shardview", Floor: F4, Why: "the command and the server show a space alike"},
	{
		Dir: "internal/ballot", Floor: F1,
		Why: "election writes it; the server, the command and a sweep read it",
	},
	{
		Dir: "internal/turns", Floor: F1,
		Why: "the command writes it; the server reads it",
	},
	{
		Dir: "internal/pools", Floor: F1,
		Why: "the server, the client and a sweep name the leases of values as identity does",
	},
	{
		Dir: "internal/kinds", Floor: F0, May: []string{"store", "store/driver"},
		Why: "it tells who uses a name from its records, for the rules",
	},
	{Dir: "internal/durations", Floor: F0, Only: []string{"std"}, Why: "a duration is written alike in flags, settings, URLs of stores and JSON"},
	{Dir: "internal/wanted", Floor: F0, May: []string{"store"}, Why: "how primitives acquire a name, of which package lease shows less"},
	{Dir: "internal/keyspace", Floor: F0, May: []string{"store", "store/driver"}, Why: "what a name may be is one rule, from the driver of leases up to the command"},

	{Dir: "store/memory", Floor: F1, Engine: true},
	{
		Dir: "store/file", Floor: F1, Engine: true, Libs: []string{x, "modernc.org/sqlite"},
		Why: "SQLite in Go, and the system calls for locks",
	},
	{Dir: "store/dynamodb/...", Floor: F1, Engine: true, Libs: []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"}, Why: "the AWS SDK; its config and credentials are the command's"},
	{Dir: "store/etcd/...", Floor: F1, Engine: true, Libs: []string{"go.etcd.io/etcd", "google.golang.org/grpc"}, Why: "etcd's client, and its status codes"},
	{Dir: "store/consul/...", Floor: F1, Engine: true, Libs: []string{"github.com/hashicorp/consul/api"}, Why: "Consul's client"},
	{Dir: "store/zookeeper/...", Floor: F1, Engine: true, Libs: []string{"github.com/go-zookeeper/zk"}, Why: "a ZooKeeper client"},
	{Dir: "store/kubernetes/...", Floor: F1, Engine: true, Libs: []string{"k8s.io/client-go", "k8s.io/api", "k8s.io/apimachinery"}, Why: "the Kubernetes client"},
	{Dir: "store/postgres/...", Floor: F1, Engine: true, Libs: []string{"github.com/jackc/pgx/v5"}, Why: "a PostgreSQL driver"},
	{Dir: "store/redis/...", Floor: F1, Engine: true, Libs: []string{"github.com/redis/go-redis/v9"}, Why: "a Redis client"},
	{Dir: "store/nats/...", Floor: F1, Engine: true, Libs: []string{"github.com/nats-io/nats.go"}, Why: "the NATS client"},
	{
		Dir: "store/faulty", Floor: F1, Tests: true, May: []string{"store/memory"},
		Why: "what a failover loses it loses from memory",
	},
	{
		Dir: "store/storetest", Floor: F1, Tests: true, Libs: []string{"pgregory.net/rapid"}, May: []string{"store/faulty", "lease", "internal/proof/records"},
		Why: "the conformance suite draws records at random, puts faults between itself and the engine, and has leases on what fails over",
	},
	{
		Dir: "fence/...", Floor: F1, Only: []string{"std", "fence"},
		Why: "a guarded resource links its own client and fence, no store and no lease",
	},
	{Dir: "fence/fencefile", Floor: F1, Only: []string{"std", "fence", "fence/filemarks"}, May: []string{"fence/filemarks"}, Why: "it keeps its mark as the guards without a store do"},
	{Dir: "fence/fencehttp", Floor: F1, Only: []string{"std", "fence", "internal/httpwrite"}, Why: "its own client and fence, no store and no lease, and the rule of what writes"},
	{Dir: "fence/fencedynamodb", Floor: F1, Only: []string{"std", "fence"}, Libs: []string{"github.com/aws/aws-sdk-go-v2"}, Why: "the AWS SDK, and no store"},
	{Dir: "fence/fenceetcd", Floor: F1, Only: []string{"std", "fence"}, Libs: []string{"go.etcd.io/etcd"}, Why: "etcd's client, and no store"},
	{Dir: "fence/fencegrpc", Floor: F1, Only: []string{"std", "fence"}, Libs: []string{"google.golang.org/grpc", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/protobuf"}, Why: "gRPC, the details of its statuses, and no store"},
	{Dir: "fence/fencekubernetes", Floor: F1, Only: []string{"std", "fence"}, Libs: []string{"k8s.io/client-go", "k8s.io/api", "k8s.io/apimachinery"}, Why: "the Kubernetes client, and no store"},
	{Dir: "fence/fencepgx", Floor: F1, Only: []string{"std", "fence", "fence/fencesql"}, May: []string{"fence/fencesql"}, Libs: []string{"github.com/jackc/pgx/v5"}, Why: "the SQL guard in transactions of pgx, and no store"},
	{Dir: "fence/fenceredis", Floor: F1, Only: []string{"std", "fence"}, Libs: []string{"github.com/redis/go-redis/v9"}, Why: "a Redis client, and no store"},
	{
		Dir: "fence/fencetest", Floor: F1, Tests: true, Only: []string{"std", "fence"},
		Why: "it serves the tests of every guard, so it must bring nothing into their graphs",
	},

	{
		Dir: "internal/protocol", Floor: Rules,
		Only: []string{
			"cmp", "encoding/binary", "errors", "fmt", "hash/fnv", "maps", "math", "math/bits", "slices", "strconv", "strings",
			"time", "clock", "fence", "store", "store/driver", "internal/kinds",
		},
		Never: []string{
			"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker",
			"time.Tick", "time.Sleep", "clock.System", "clock/clocktest.New", "clock.NewTimer", "clock.Sleep", "clock.WithTimeout",
			"store.Load", "store.Wait", "store/driver.WaitHolder",
		},
		Why: "decisions are pure: no clock, no chance, no lock, no I/O, so that a model check can exhaust them",
	},
	{
		Dir: "internal/sessions", Floor: Rules, May: []string{"internal/protocol"},
		Why: "the lease, too, has to know whether the sessions that a record lists are over",
	},
	{
		Dir: "internal/drive", Floor: Drive,
		Never: []string{"time.Now", "time.Since", "time.After", "time.AfterFunc", "time.NewTimer", "time.Sleep", "clock.System", "clock/clocktest.New"},
		Why:   "the simulator and the model check run it by events, under clocks of their own",
	},
	{
		Dir: "lease/sightings", Floor: F1, Libs: []string{x},
		Why: "what is known of a folder, a file and a file system comes through x/sys; it holds nothing itself, and the watch of sessions needs it",
	},
	{Dir: "lease", Floor: F2, Never: holds, Why: "one driver of holds, which the simulator runs, too"},
	{Dir: "lease/leaseotel", Floor: F3, Libs: []string{"go.opentelemetry.io/otel"}, Why: "telemetry of OpenTelemetry, whose module only its users get"},

	{Dir: "internal/lessor", Floor: F3, Never: holds, Why: "one driver of holds, which the simulator runs, too"},
	{
		Dir: "internal/api", Floor: F3, May: []string{"election", "identity", "shard"},
		Why: "its table of problems has their errors, and it writes what they say as JSON",
	},
	{
		Dir: "internal/incident", Floor: F3, May: []string{"internal/api"},
		Why: "the command and the server write one report",
	},
	{
		Dir: "internal/pairs", Floor: F3, May: []string{"internal/api"},
		Why: "compat/admiral writes what it reads; the server and the command show it",
	},
	{Dir: "election", Floor: F3},
	{Dir: "lock", Floor: F3},
	{Dir: "identity", Floor: F3},
	{Dir: "shard", Floor: F3},

	{
		Dir: "server/...", Floor: F4, Libs: []string{"github.com/prometheus/client_golang", "go.yaml.in/yaml/v3"}, May: []string{"compat/rdlm", "compat/admiral", "server/web", "client", "internal/shardview"},
		Why: "its metrics, what it speaks beside its own API, the pairs and spaces that it shows, and in tests the description of that, and its client",
	},
	{Dir: "client", Floor: F4},
	{Dir: "internal/shardcall", Floor: F3, May: []string{"shard"}, Why: "one way to find an owner, for HTTP and for gRPC"},
	{Dir: "shard/shardhttp", Floor: F4, Why: "it carries what shard says over HTTP"},
	{Dir: "shard/shardgrpc", Floor: F4, Libs: []string{"google.golang.org/grpc", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/protobuf"}, Why: "it carries what shard says over gRPC, with the details of its statuses"},
	{Dir: "gate", Floor: F4},
	{Dir: "sweep", Floor: F4},
	{Dir: "compat/rdlm", Floor: F4},
	{Dir: "compat/controllerruntime", Floor: F4, Libs: []string{"k8s.io/client-go", "k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/controller-runtime", "github.com/go-logr/logr"}, Why: "the managers and caches of controllers"},
	{Dir: "compat/admiral/...", Floor: F4, Libs: []string{"go.yaml.in/yaml/v3"}, Why: "its configuration file"},
	{
		Dir: "internal/proof/sim/...", Floor: F4, Libs: []string{"github.com/anishathalye/porcupine"},
		May: []string{"store/memory", "store/faulty", "internal/proof/seeded"}, Never: holds,
		Why: "the simulated world has a store, its histories are checked for linearizability, and its tools switch seeded bugs on; it runs the driver that production runs",
	},

	{
		Dir: "store/open", Floor: F5,
		Libs: []string{
			x, "github.com/aws", "go.etcd.io/etcd", "google.golang.org/grpc", "go.uber.org/zap", "github.com/hashicorp/consul/api",
			"github.com/go-zookeeper/zk", "k8s.io", "github.com/jackc/pgx/v5", "github.com/redis/go-redis/v9", "github.com/nats-io/nats.go",
		},
		Why: "the client of every engine, made out of a URL",
	},
	{
		Dir: "cmd/leasehold/...", Floor: F5, May: []string{"store/open"},
		Libs: []string{
			x, "github.com/spf13/cobra", "github.com/spf13/pflag", "go.yaml.in/yaml/v3", "github.com/prometheus/client_golang",
			"github.com/aws", "go.etcd.io/etcd", "google.golang.org/grpc", "go.uber.org/zap", "github.com/hashicorp/consul/api",
			"github.com/go-zookeeper/zk", "k8s.io", "github.com/jackc/pgx/v5", "github.com/redis/go-redis/v9", "github.com/nats-io/nats.go",
			"github.com/coreos/go-oidc/v3", "github.com/go-jose/go-jose/v4", "github.com/adhocore/gronx", "modernc.org/sqlite",
		},
		Why: "the journal, which is a file of the embedded store's database; flags, cron expressions, the tokens of issuers, completions, the configuration file, the terminal; and what engines' clients have beside their stores",
	},

	{Dir: "examples/...", Floor: Outer},
	{Dir: "examples/gate", Floor: Outer, Libs: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go"}, Why: "its tests are clients of a Kubernetes API server"},
	{Dir: "examples/admiral-dr", Floor: Outer, Libs: []string{"github.com/aws/aws-sdk-go-v2"}, Why: "it makes Admiral's table in DynamoDB Local"},
	{
		Dir: "examples/chapter9", Floor: Outer, Libs: []string{"go.etcd.io/etcd", "github.com/hashicorp/consul/api", "github.com/go-zookeeper/zk"},
		Why: "it builds locks by the services' own clients, without a store",
	},
	{
		Dir: "examples/controller-runtime", Floor: Outer, Libs: []string{"k8s.io", "sigs.k8s.io/controller-runtime", "github.com/go-logr/logr"},
		Why: "what it moves over",
	},
	{
		Dir: "examples/multicluster", Floor: Outer, Libs: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "go.etcd.io/etcd"},
		Why: "its controller writes to API servers, and the lease is in etcd",
	},
	{
		Dir: "examples/fencing-grpc", Floor: Outer, Libs: []string{"google.golang.org/grpc", "google.golang.org/protobuf"},
		Why: "its service and its client",
	},
	{Dir: "examples/shards/...", Floor: Outer, Libs: []string{"github.com/nats-io/nats.go", "modernc.org/sqlite"}, Why: "the stream that is consumed, and the table of jobs"},
	{Dir: "examples/fencing-sql", Floor: Outer, Libs: []string{"modernc.org/sqlite"}, Why: "the database that it guards"},
	{
		Dir: "examples/fencing-stores", Floor: Outer,
		Libs: []string{"github.com/aws/aws-sdk-go-v2", "go.etcd.io/etcd", "github.com/redis/go-redis/v9", "k8s.io"},
		Why:  "it writes to each store by the store's own client",
	},
	{
		Dir: "store/dynamodb/dynamotables/interop", Floor: Outer, Libs: []string{"github.com/aws/aws-sdk-go-v2"},
		Why: "it is nothing but tests: leases and the neighbours' own clients on one table",
	},
	{
		Dir: "server/web/browsertest", Floor: Outer, Libs: []string{"github.com/chromedp"},
		Why: "it is nothing but tests: the page in a browser, which the server does not need",
	},
	{
		Dir: "cmd/leasehold/internal/issuer/interop", Floor: Outer, Libs: []string{"github.com/zitadel/oidc/v3", "github.com/go-jose/go-jose/v4", "github.com/chromedp"},
		May: []string{"cmd/leasehold/internal/issuer", "cmd/leasehold/internal/policy", "server"},
		Why: "it is nothing but tests: callers that a real OpenID Connect issuer names, whom the command does not need",
	},
	{
		Dir: "fence/fencesql/interop", Floor: Outer, Libs: []string{"github.com/jackc/pgx/v5", "github.com/jmoiron/sqlx", "gorm.io", "modernc.org/sqlite"},
		Why: "it is nothing but tests: the guards, and ids, in real databases, whose drivers no user of fencesql or flake needs",
	},
	{
		Dir: "internal/proof/servers/...", Floor: F1, Tests: true, Only: []string{"std", "internal/proof/servers"},
		Why: "it starts real servers for the tests of every module, so it must bring nothing into their graphs",
	},
	{
		Dir: "internal/proof/ctxtest", Floor: F0, Tests: true, Only: []string{"std"},
		Why: "it serves tests of any floor, so it knows nothing of them",
	},
	{
		Dir: "internal/proof/stalltest", Floor: F0, Tests: true, May: []string{"clock"}, Only: []string{"std", "clock"},
		Why: "it serves the tests of every module, so it must bring nothing into their graphs",
	},
	{
		Dir: "internal/proof/records", Floor: F0, Tests: true, May: []string{"fence", "store"}, Libs: []string{"pgregory.net/rapid"},
		Why: "the tests of the contract and those of engines draw the same records",
	},
	{
		Dir: "internal/proof/seeded", Floor: F0, Tests: true, Only: []string{"std"},
		Why: "mutated code of every package asks it which mutant is on; code that isn't mutated has none to ask for",
	},
	{
		Dir: "internal/proof/leasetest", Floor: F3, Tests: true, May: []string{"store/memory", "store/faulty", "clock/clocktest"},
		Why: "the tests of leases, and of what is made of them, share one world",
	},
	{
		Dir: "internal/proof/shardtest", Floor: F4, Tests: true, May: []string{"clock", "fence", "lease", "shard", "store", "store/memory"},
		Why: "the tests of the transports to sharded workers share one world",
	},
	{
		Dir: "internal/proof/golden", Floor: F1, Tests: true, Only: []string{"std"},
		Why: "it serves the tests of every module, so it must bring nothing into their graphs",
	},
	{Dir: "internal/proof/charts", Floor: Outer, Libs: []string{"helm.sh/helm/v4", "sigs.k8s.io/yaml"}, Why: "Helm renders the charts"},
	{Dir: "internal/proof/engines/...", Floor: Outer, Libs: []string{"*"}, Why: "it runs every engine beside its own client's recipes"},
	{Dir: "internal/proof/archtest/...", Floor: Outer, Only: []string{"std"}, Why: "what judges the house stands outside it"},
	{Dir: "internal/proof/testreport", Floor: Outer, Only: []string{"std"}, Why: "what judges the house stands outside it: it runs go test when the rest does not compile, too"},
	{Dir: "internal/proof/testdiff", Floor: Outer, Only: []string{"std"}, Why: "it reads what go test writes, of trees that are not ours"},
	{Dir: "internal/proof/newengine", Floor: Outer, Only: []string{"std"}, Why: "it writes the files of an engine that is not there yet"},
	{Dir: "internal/release", Floor: Outer, Libs: []string{"*"}, Why: "it makes releases: module zips, a list of what is linked, and the differences of APIs"},
	{Dir: "internal/site", Floor: Outer, Libs: []string{"github.com/yuin/goldmark", "github.com/chromedp"}, Why: "it makes pages of Markdown, and its tests look at them in a browser"},
	{Dir: "internal/proof/pages", Floor: F1, Tests: true, Only: []string{"std", "internal/proof/servers"}, May: []string{"internal/proof/servers"}, Why: "the tests of the command run the pages' commands by it"},
	{
		Dir: "internal/proof/apilist", Floor: Outer, Only: []string{"std", "internal/proof/archtest"}, May: []string{"internal/proof/archtest"},
		Why: "what judges the house stands outside it",
	},
	{Dir: "internal/proof/mutate/...", Floor: Outer, Only: []string{"std", "clock", "internal/proof/mutate"}, Why: "what mutates the sources stands outside them, and compiles when they don't"},
	{Dir: "internal/proof/soak/...", Floor: Outer, Libs: []string{"*"}, Why: "file locks and signals, and the clients of all that it guards"},
	{Dir: "internal/proof/bench/availability", Floor: Outer, Libs: []string{"*"}, Why: "it measures elections beside those of other libraries"},
	{Dir: "internal/proof/bench/ids", Floor: Outer, Libs: []string{"*"}, Why: "it measures other libraries that make ids"},
	{Dir: "internal/proof/bench/shards", Floor: Outer, Libs: []string{"*"}, Why: "it measures the strategies of others that spread shards"},
	{Dir: "internal/proof/bench/...", Floor: Outer, Libs: []string{x}, Why: "what the file system and the machine are"},
}

// forTests is what any test may import of ours, and testLibs of others.
var (
	forTests = []string{"clock/clocktest", "store/memory", "store/faulty", "store/storetest", "fence/fencetest", "fence/filemarks", "internal/proof/servers", "internal/proof/golden", "internal/proof/records", "internal/proof/leasetest", "internal/proof/shardtest", "lease"}
	testLibs = []string{
		x, "go.uber.org/goleak", "pgregory.net/rapid", "github.com/anishathalye/porcupine", "github.com/rogpeppe/go-internal",
	}
)
