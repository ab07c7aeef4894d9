package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/leasehold/leasehold/clock"
)

// maxAttempts is how often a request is made before its caller is told.
const maxAttempts = 8

// The bounds of the pause before the next attempt.
const (
	pauseMin      = 20 * time.Millisecond
	pauseMax      = time.Second
	pauseThrottle = 50 * time.Millisecond // the least when the server asked for less
)

// answer is what came of an attempt.
type answer struct {
	row      Row
	date     time.Time // the server's; zero when it sent none
	capacity *types.ConsumedCapacity
	write    bool // units are write units
}

// call is one request, made as often as it takes.
type call struct {
	op   string
	read bool // it changes nothing
	once bool // not sent again while an earlier copy may be on its way
	size int  // of the row that is written
	send func(context.Context, func(*dynamodb.Options)) (answer, error)
}

// do makes the request until it is answered or refused, ctx is done or maxAttempts have failed.
// doubt is how the first attempt ended that may have been carried out though it failed, if there
// was one: the last, too, or one before it.
func (t *Table) do(ctx context.Context, c call) (a answer, doubt, err error) {
	for n := 1; ; n++ {
		var f fate
		a, f, err = t.attempt(ctx, c)
		if doubt == nil && f == unclear {
			doubt = err
		}
		switch {
		case f == done || f == refused || f == unclear && c.once:
			return a, doubt, err
		case ctx.Err() != nil:
			return a, doubt, interrupted(ctx, err)
		case n == maxAttempts:
			return a, doubt, fmt.Errorf("%d attempts failed, the last by: %w", n, err)
		}
		// An attempt after the end of ctx, which may come just after the pause, would say nothing
		// of the last one's answer.
		if clock.Sleep(ctx, t.opts.Clock, pause(n, err)) != nil || ctx.Err() != nil {
			return a, doubt, interrupted(ctx, err)
		}
	}
}

// interrupted is the error of a call whose context has ended.
func interrupted(ctx context.Context, last error) error {
	cause := context.Cause(ctx)
	if errors.Is(last, cause) {
		return last
	}
	return fmt.Errorf("%w; until then: %w", cause, last)
}

// pause returns how long to wait after attempt n, at random between the half and the whole of a
// bound that doubles.
func pause(n int, err error) time.Duration {
	least := pauseMin
	if throttled(err) {
		least = pauseThrottle
	}
	d := min(least<<(n-1), pauseMax)
	return d/2 + rand.N(d/2)
}

// attempt makes the request once.
func (t *Table) attempt(parent context.Context, c call) (answer, fate, error) {
	limit := t.opts.Attempt
	if c.read {
		limit = t.reads.limit(limit)
	}
	ctx, cancel := clock.WithTimeout(parent, t.opts.Clock, limit)
	defer cancel()
	p := new(progress)
	sent := t.opts.Clock.Now()
	a, err := c.send(p.trace(ctx), p.options)
	if err != nil && code(err) == "" { // what the client says then isn't the cause
		if parent.Err() != nil {
			err = context.Cause(parent)
		} else if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %v: %w", limit, context.Cause(ctx))
		}
	}
	if c.read && (err == nil || ctx.Err() != nil && parent.Err() == nil) {
		t.reads.saw(limit, t.opts.Clock.Now().Sub(sent))
	}
	if err != nil && p.unsent() {
		err = &unsentError{err, p.local()}
	}
	if a.date.IsZero() {
		a.date = dateOf(err)
	}
	t.listen(a.date, sent)
	err = replied(err)
	if t.opts.OnRequest != nil {
		t.opts.OnRequest(request(c, a, err, t.opts.Clock.Now().Sub(sent)))
	}
	return a, fateOf(err), err
}

func request(c call, a answer, err error, took time.Duration) Request {
	r := Request{Operation: c.op, Took: took, Err: err}
	switch cond := new(types.ConditionalCheckFailedException); {
	case errors.As(err, &cond):
		r.Write = Units(max(c.size, Size(cond.Item)), writeUnit)
	case a.capacity == nil:
	case a.write:
		r.Write = aws.ToFloat64(a.capacity.CapacityUnits)
	default:
		r.Read = aws.ToFloat64(a.capacity.CapacityUnits)
	}
	return r
}

// counted asks for the units of a request when somebody counts.
func (t *Table) counted() types.ReturnConsumedCapacity {
	if t.opts.OnRequest == nil {
		return types.ReturnConsumedCapacityNone
	}
	return types.ReturnConsumedCapacityTotal
}

// unsentError is the error of an attempt that never reached the network.
type unsentError struct {
	error
	local bool // there was not even a request to send
}

func (e *unsentError) Unwrap() error { return e.error }

// progress is how far an attempt got inside the client, as far as the client lets that be seen.
type progress struct {
	entered   atomic.Bool // the client takes options
	sending   atomic.Bool // it was handed to the HTTP client
	wanted    atomic.Bool // a connection was asked for
	connected atomic.Bool // there was one
}

// unsent reports whether the attempt certainly never reached the network.
func (p *progress) unsent() bool {
	return p.entered.Load() && !p.sending.Load() || p.wanted.Load() && !p.connected.Load()
}

// local reports whether it failed before there was a request to send: for want of credentials, as a
// rule.
func (p *progress) local() bool { return p.entered.Load() && !p.sending.Load() }

func (p *progress) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { p.wanted.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { p.connected.Store(true) },
	})
}

// options turns the client's retries off and watches the request pass through the client.
func (p *progress) options(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("LeaseholdEntered", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			p.entered.Store(true)
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
		return errors.Join(err, stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("LeaseholdSending", func(
			ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
		) (middleware.DeserializeOutput, middleware.Metadata, error) {
			p.sending.Store(true)
			return next.HandleDeserialize(ctx, in)
		}), middleware.After))
	})
}

// date returns the server's time in the metadata of an answer.
func date(m middleware.Metadata) time.Time {
	at, _ := awsmiddleware.GetServerTime(m)
	return at
}

// dateOf returns the server's time in the answer behind an error, if there is one.
func dateOf(err error) time.Time {
	var re *smithyhttp.ResponseError
	if !errors.As(err, &re) || re.Response == nil {
		return time.Time{}
	}
	at, err := http.ParseTime(re.Response.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
