package table

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// Client is what is used of a *dynamodb.Client. One that retries by itself although it is told not
// to must not report an attempt as refused when an earlier one may have been carried out.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// Row is an item: its attributes by name.
type Row = map[string]types.AttributeValue

// Options of a [Table]. The zero value is ready for use.
type Options struct {
	Attempt time.Duration // bounds one request: 30 s by default
	Clock   clock.Clock   // clock.System() by default
	// Told of each request that was made, retries included; it must not block.
	OnRequest func(Request)

	// PollMax is the longest pause between two looks of a waiter, for a store that has no option of
	// its own for that: 1 s by default, 20 ms to 1 h.
	PollMax time.Duration

	// HomeRegion is the one Region in which all, other libraries included, write to a global table
	// in eventual mode.
	HomeRegion string
	// Identity, if set, says who the client is to AWS, for those who examine the table.
	Identity func(context.Context) (string, error)
}

// Request is one request to the server, for those who count.
type Request struct {
	Operation string        // "PutItem"
	Took      time.Duration // until the answer came, or none
	Read      float64       // read units; 0 for a write
	// Write units, estimated from the sizes of both rows when the condition failed; 0 for a read.
	Write float64
	Err   error // what the attempt came to
}

// Throttled reports whether the server refused the request for the table's capacity.
func (r Request) Throttled() bool { return throttled(r.Err) }

// DefaultAttempt bounds a request unless the options say otherwise.
const DefaultAttempt = 30 * time.Second

// Table is one table. All methods may be called from any goroutine. They block until the server
// answered, ctx is done, the table is closed or [maxAttempts] attempts have failed.
type Table struct {
	Name   string
	Make   string // how to make it, for those who find none
	client Client
	opts   Options

	life context.Context // ends with Close, by store.ErrClosed
	end  context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // calls under way; joined under mu while not closed
	heard   heard          // under mu

	reads patience
}

// New returns access to the table of that name.
func New(client Client, name string, opts Options) *Table {
	if opts.Attempt <= 0 {
		opts.Attempt = DefaultAttempt
	}
	if opts.Clock == nil {
		opts.Clock = clock.System()
	}
	t := &Table{Name: name, client: client, opts: opts}
	t.life, t.end = context.WithCancelCause(context.Background())
	return t
}

// Clock returns the clock of the table's options.
func (t *Table) Clock() clock.Clock { return t.opts.Clock }

// Close ends the calls under way and waits for them. They and later ones return [store.ErrClosed].
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end(store.ErrClosed)
	t.running.Wait()
}

// begin joins the calls under way. The context that it returns ends with ctx and with the table;
// done has to be called.
func (t *Table) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, nil, store.ErrClosed
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	t.running.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.life, func() { cancel(store.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		t.running.Done()
	}, nil
}
