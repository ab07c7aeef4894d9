package dynamotables

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// gate is a client in front of the real one. It can do something before a write goes out, or have it never go out, and it
// counts.
type gate struct {
	Client
	key string // the partition key's attribute

	mu     sync.Mutex
	before func(op string, companion bool) error // for the next write that it takes
	log    []string                              // operations
}

// errCrash is the answer to a write that never goes out: a refusal, so that nobody tries it again.
var errCrash error = &smithyhttp.ResponseError{
	Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusBadRequest}},
	Err:      &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "crashed"},
}

func (g *gate) pass(op string, key table.Row) error {
	k, _ := key[g.key].(*types.AttributeValueMemberS)
	companion := k != nil && strings.HasPrefix(k.Value, companionPrefix)
	g.mu.Lock()
	before := g.before
	what := op
	if companion {
		what += " companion"
	}
	g.log = append(g.log, what)
	g.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(op, companion)
}

// set has f called before each request; nil ends that.
func (g *gate) set(f func(op string, companion bool) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = f
}

// count forgets the log and returns it.
func (g *gate) count() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	log := g.log
	g.log = nil
	return log
}

func (g *gate) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := g.pass("GetItem", in.Key); err != nil {
		return nil, err
	}
	return g.Client.GetItem(ctx, in, opts...)
}

func (g *gate) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := g.pass("UpdateItem", in.Key); err != nil {
		return nil, err
	}
	return g.Client.UpdateItem(ctx, in, opts...)
}

func (g *gate) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	if err := g.pass("DeleteItem", in.Key); err != nil {
		return nil, err
	}
	return g.Client.DeleteItem(ctx, in, opts...)
}

// gated returns one more handle, behind a gate.
func (w *world) gated(t testing.TB) (*Store, *gate) {
	t.Helper()
	g := &gate{Client: w.client, key: w.kind.key}
	s, err := w.kind.open(g, w.name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, g
}
