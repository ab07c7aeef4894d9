// Package servers starts the real servers that tests of the engines run against: etcd, Consul,
// ZooKeeper, the Kubernetes API server, PostgreSQL, Redis, NATS and DynamoDB Local.
//
// Each function takes the test and returns a server that serves: its data are in a folder of the
// test's own, it listens on the loopback interface only, on ports that nobody else has, and it is
// killed when the test ends, or when the test's process dies (on Linux by a parent-death signal).
// Its log is shown when the test failed.
//
//	srv := servers.Etcd(t)
//	client, err := clientv3.New(clientv3.Config{Endpoints: []string{srv.Addr}})
//	…
//	srv.Kill()    // SIGKILL
//	srv.Restart() // on the same data and ports
//
// [Shared] gives tests that do no harm one server per test program instead; see [Main]. [Proxy]
// puts a network between a client and a server that can be cut, slowed down and made to lose
// requests or replies.
//
// # What has to be installed
//
// `scripts/engines install` installs or builds the servers' programs, outside the checkout. A test
// whose server is missing is skipped, and says so; with LEASEHOLD_TEST_REQUIRE=all it fails.
//
// LEASEHOLD_TEST_ETCD_URL and its like name a server that is up already (`make engines` prints
// them). Tests with a [Shared] server use that one, and so do tests that ask for a server of their
// own with no options while its program is missing; then killing it skips the test, for it isn't
// the test's to kill. Such a server keeps what earlier tests wrote: use a prefix, table or bucket
// of your own.
package servers
