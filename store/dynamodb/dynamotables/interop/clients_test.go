package interop

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store/dynamodb/dynamotables"
)

// other is a neighbour that takes and releases one lease of a name.
type other interface {
	acquire(name string) bool // at once, or not at all
	release()
	lost(name string) bool // does it know that it has lost the lease?
	proc() *process
}

// neighbourhood is one kind of neighbour, and a world for it.
type neighbourhood struct {
	name  string
	lease time.Duration // of the neighbour
	slack time.Duration // by which its rule lets a hold last longer than its lease

	program  *program
	startFor func(t testing.TB, w *world, owner string, lease time.Duration) other
	world    func(t testing.TB) *world
}

// start runs a neighbour with the usual lease.
func (n neighbourhood) start(t testing.TB, w *world, owner string) other {
	t.Helper()
	return n.startFor(t, w, owner, n.lease)
}

// ready has the neighbour's program built and DynamoDB run, so that no attempt at a test has to wait for them.
func (n neighbourhood) ready(t testing.TB) {
	t.Helper()
	n.program.ready(t)
	servers.DynamoDB(t, servers.Shared())
}

const rustTTL = 4 // seconds; at least 2

var rustSide = neighbourhood{
	name: "dynamodb-lease", lease: rustTTL * time.Second, slack: 2 * time.Second,
	program: rust,
	startFor: func(t testing.TB, w *world, _ string, lease time.Duration) other {
		w.expire(true)
		defer w.expire(false)
		return &rustClient{run(t, rust, w.url, w.table, strconv.Itoa(int(lease/time.Second)))}
	},
	world: func(t testing.TB) *world {
		return newWorld(t, "key", "lease_expiry", func(c dynamotables.Client, table string) (*dynamotables.Store, error) {
			return dynamotables.DynamoDBLease(c, dynamotables.DynamoDBLeaseOptions{Table: table, TTL: rustTTL * time.Second})
		})
	},
}

const javaLease = 4 * time.Second

var javaSide = neighbourhood{
	name: "dynamodb-lock-client", lease: javaLease, slack: time.Second,
	program: java,
	startFor: func(t testing.TB, w *world, owner string, lease time.Duration) other {
		ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
		return &javaClient{run(t, java, w.url, w.table, owner, ms(lease), ms(lease/4))}
	},
	world: func(t testing.TB) *world {
		return newWorld(t, "key", "", func(c dynamotables.Client, table string) (*dynamotables.Store, error) {
			return dynamotables.AWSLockClient(c, dynamotables.AWSLockClientOptions{Table: table})
		})
	},
}

const goLease = 4 * time.Second

var goSide = neighbourhood{
	name: "dynamolock", lease: goLease, slack: time.Second,
	program: golang,
	startFor: func(t testing.TB, w *world, owner string, lease time.Duration) other {
		return &goClient{run(t, golang, w.url, w.table, owner, lease.String(), (lease / 4).String())}
	},
	world: func(t testing.TB) *world {
		return newWorld(t, "key", "", func(c dynamotables.Client, table string) (*dynamotables.Store, error) {
			return dynamotables.AWSLockClient(c, dynamotables.AWSLockClientOptions{Table: table, Duration: dynamotables.DurationDynamolock})
		})
	},
}

type rustClient struct{ *process }

func (c *rustClient) proc() *process { return c.process }

func (c *rustClient) acquire(name string) bool {
	c.t.Helper()
	return c.granted(c.tell("acquire " + name))
}

func (c *rustClient) release()         { c.t.Helper(); c.want("drop", "dropped") }
func (c *rustClient) lost(string) bool { return c.tell("healthy") == "failed" }

type javaClient struct{ *process }

func (c *javaClient) proc() *process { return c.process }

func (c *javaClient) acquire(name string) bool {
	c.t.Helper()
	return c.granted(c.tell("once " + name))
}

func (c *javaClient) release()              { c.t.Helper(); c.want("release", "released") }
func (c *javaClient) lost(name string) bool { return c.tell("has "+name) == "no" }

type goClient struct{ *process }

func (c *goClient) proc() *process { return c.process }

// acquire waits if the lock is taken, for a lease and a second: dynamolock counts a lease only while it waits for it.
func (c *goClient) acquire(name string) bool {
	c.t.Helper()
	return c.atOnce(name) || c.granted(c.tell("try "+name))
}

func (c *goClient) atOnce(name string) bool {
	c.t.Helper()
	return c.granted(c.tell("once " + name))
}

func (c *goClient) release()              { c.t.Helper(); c.want("release", "released") }
func (c *goClient) lost(name string) bool { return c.tell("has "+name) == "no" }

// granted reads the answer to an attempt to acquire.
func (n *process) granted(answer string) bool {
	n.t.Helper()
	if strings.HasPrefix(answer, "error") {
		n.t.Fatal(answer)
	}
	return answer == "held"
}
