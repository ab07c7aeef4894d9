// Package resources is the guarded resources of the soak: one of every kind that Leasehold has a
// guard for, on real servers. Each has a log for every lease name, to which a write adds a line, so
// that the order of what it accepted can be judged.
package resources

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/fence"
)

// Resource is a guarded resource. Its methods are called by one goroutine at a time.
type Resource interface {
	// Write adds a line to the log of s.Name. It returns an error that matches [fence.ErrStale]
	// when the guard refuses s.
	Write(ctx context.Context, s fence.Sequencer, line string) error
	// Log returns the lines of a name in the order in which they were accepted.
	Log(ctx context.Context, name string) ([]string, error)
	Close() error
}

// Kind is a kind of guarded resource.
type Kind struct {
	Name   string
	Engine string // the server that it needs, as package servers calls it; "" when it needs none
	// Rewrites says that a write replaces the log by what it read before and its own line. So lines
	// of two writes at a time may get lost.
	Rewrites bool

	served bool // by the host itself
	open   func(ctx context.Context, address string) (Resource, error)
}

// Kinds are all of them.
var Kinds = []Kind{
	{Name: "http-online", served: true, open: openHTTP},
	{Name: "http-offline", served: true, open: openHTTP},
	{Name: "grpc", served: true, open: openGRPC},
	{Name: "file-append", open: openAppended},
	{Name: "file-replace", Rewrites: true, open: openReplaced},
	{Name: "sqlite", open: openSQLite},
	{Name: "postgres", Engine: "postgres", open: openPostgres},
	{Name: "etcd", Engine: "etcd", open: openEtcd},
	{Name: "redis", Engine: "redis", open: openRedis},
	{Name: "dynamodb", Engine: "dynamodb", open: openDynamoDB},
	{Name: "kubernetes", Engine: "kubernetes", open: openKubernetes},
}

// kind returns the kind of that name.
func kind(name string) (Kind, error) {
	for _, k := range Kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("no kind of resource is called %q", name)
}

// Open opens a resource of a kind that a [Host] has started. The caller closes it.
func Open(ctx context.Context, name, address string) (Resource, error) {
	k, err := kind(name)
	if err != nil {
		return nil, err
	}
	return k.open(ctx, address)
}
