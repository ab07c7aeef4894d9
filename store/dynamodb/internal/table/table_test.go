package table

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answered is the error of an answer.
func answered(status int, code string) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status, Header: http.Header{}}},
		Err:      &smithy.GenericAPIError{Code: code},
	}
}

// skewed is an error that the SDK takes for one of a wrong clock, which it may have corrected.
type skewed struct {
	error
	corrected bool
}

func (s skewed) RetryableError() bool { return s.corrected }
func (s skewed) Unwrap() error        { return s.error }

func TestFates(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want fate
	}{
		"done":                     {nil, done},
		"condition":                {answeredBy(400, &types.ConditionalCheckFailedException{}), refused},
		"access":                   {answered(400, "AccessDeniedException"), refused},
		"no table":                 {answeredBy(400, &types.ResourceNotFoundException{}), refused},
		"provisioned throughput":   {answeredBy(400, &types.ProvisionedThroughputExceededException{}), later},
		"throttling":               {answeredBy(400, &types.ThrottlingException{}), later},
		"request limit":            {answeredBy(400, &types.RequestLimitExceeded{}), later},
		"another Region":           {answeredBy(400, &types.ReplicatedWriteConflictException{}), later},
		"fault inside":             {answeredBy(500, &types.InternalServerError{}), unclear},
		"unavailable":              {answered(503, "ServiceUnavailable"), unclear},
		"timed out at the server":  {answered(408, "RequestTimeout"), unclear},
		"a proxy's page":           {answered(403, "UnknownError"), unclear},
		"a success that is broken": {answered(200, "SerializationException"), unclear},
		"signature":                {answered(403, "InvalidSignatureException"), refused},
		"signature, wrong clock":   {skewed{answered(403, "InvalidSignatureException"), true}, later},
		"signature, right clock":   {skewed{answered(403, "InvalidSignatureException"), false}, refused},
		"no connection":            {&net.OpError{Op: "dial", Err: errors.New("refused")}, later},
		"no such host":             {&net.DNSError{}, later},
		"connection reset":         {&net.OpError{Op: "read", Err: errors.New("reset")}, unclear},
		"no answer":                {context.DeadlineExceeded, unclear},
		"never sent":               {&unsentError{context.DeadlineExceeded, false}, later},
		"never made":               {&unsentError{errors.New("no credentials"), true}, refused},
		"anything else":            {errors.New("novel"), unclear},
	} {
		if got := fateOf(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func answeredBy(status int, err error) error {
	e := answered(status, "").(*smithyhttp.ResponseError)
	e.Err = err
	return fmt.Errorf("operation error: %w", e)
}

// Pauses double up to a second, half of each at random, and begin longer when the server asked for fewer requests.
func TestPause(t *testing.T) {
	for n := 1; n < 30; n++ {
		for _, c := range []struct {
			err   error
			least time.Duration
		}{{errors.New("x"), 20 * time.Millisecond}, {answered(400, "ThrottlingException"), 50 * time.Millisecond}} {
			most := time.Second
			if n < 7 {
				most = min(c.least<<(n-1), time.Second)
			}
			seen := map[time.Duration]bool{}
			for range 50 {
				d := pause(n, c.err)
				if seen[d] = true; d < most/2 || d > most {
					t.Errorf("pause %d after %v is %v, want %v to %v", n, c.err, d, most/2, most)
				}
			}
			if len(seen) < 10 {
				t.Errorf("pause %d: no chance in it", n)
			}
		}
	}
}

// silent is a client that never answers.
type silent struct{ Client }

func (silent) PutItem(ctx context.Context, _ *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Each attempt has a limit, and all of them another; a context and a Close end them at once, with their cause.
func TestSilence(t *testing.T) {
	put := func(ctx context.Context, tab *Table) error { return tab.Put(ctx, nil, nil, Cond{}, nil) }
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		tab := New(silent{}, "t", Options{Attempt: time.Second, Clock: clocktest.New(0), OnRequest: func(r Request) {
			if attempts++; r.Took.Round(time.Millisecond) != time.Second || r.Err == nil {
				t.Errorf("%+v", r)
			}
		}})
		defer tab.Close()
		start := time.Now()
		err := put(t.Context(), tab)
		if took := time.Since(start); !errors.Is(err, store.ErrUnknownOutcome) || attempts != maxAttempts || took < 8*time.Second || took > 12*time.Second {
			t.Errorf("%v after %d attempts and %v", err, attempts, took)
		}
	})
	errEnough := errors.New("enough")
	for name, c := range map[string]struct {
		end  func(*Table, context.CancelCauseFunc)
		want error
	}{
		"cancel": {func(_ *Table, cancel context.CancelCauseFunc) { cancel(errEnough) }, errEnough},
		"close":  {func(tab *Table, _ context.CancelCauseFunc) { tab.Close() }, store.ErrClosed},
	} {
		for _, when := range []time.Duration{500 * time.Millisecond, 1001 * time.Millisecond} { // in an attempt, in a pause
			synctest.Test(t, func(t *testing.T) {
				tab := New(silent{}, "t", Options{Attempt: time.Second, Clock: clocktest.New(0)})
				defer tab.Close()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				start := time.Now()
				time.AfterFunc(when, func() { c.end(tab, cancel) })
				err := put(ctx, tab)
				if !errors.Is(err, c.want) || !errors.Is(err, store.ErrUnknownOutcome) || time.Since(start).Round(time.Millisecond) != when.Round(time.Millisecond) {
					t.Errorf("%s after %v: %v after %v", name, when, err, time.Since(start))
				}
			})
		}
	}
}

// throttling is a client that is told to ask later.
type throttling struct{ Client }

func (throttling) PutItem(ctx context.Context, _ *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, answered(400, "ThrottlingException")
}

// endsWith is a clock on which every pause is over as soon as it begins, when a context has ended, too.
type endsWith struct {
	clock.Clock
	end func()
}

func (c endsWith) AfterFunc(d time.Duration, f func()) func() bool {
	if d > pauseMax { // the limit of an attempt
		return c.Clock.AfterFunc(d, f)
	}
	f()
	c.end()
	return func() bool { return false }
}

// A context that ends as a pause is over changes nothing of what is known: the write was refused each time. Which of the two is seen
// first is left to chance.
func TestContextEndsWithAPause(t *testing.T) {
	for range 20 {
		errEnough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		clk := endsWith{clocktest.New(0), func() { cancel(errEnough) }}
		tab := New(throttling{}, "t", Options{Attempt: time.Minute, Clock: clk})
		err := tab.Put(ctx, nil, nil, Cond{}, nil)
		if !errors.Is(err, errEnough) || errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "throttled") {
			t.Errorf("%v, want the context's cause, a known outcome and the reason", err)
		}
		tab.Close()
	}
}

// Late is after what the server's clock shows, as long as nobody sets it, whatever rate the clocks have within a tenth.
func TestLate(t *testing.T) {
	for _, rate := range []float64{0.9, 1, 1.1} {
		synctest.Test(t, func(t *testing.T) {
			clk := clocktest.New(0)
			clk.SetRate(rate)
			tab := New(silent{}, "t", Options{Clock: clk})
			defer tab.Close()
			if _, ok := tab.Late(); ok {
				t.Error("known before the first answer")
			}
			time.Sleep(700 * time.Millisecond)
			sent := clk.Now()
			time.Sleep(1900 * time.Millisecond) // on the way
			tab.listen(time.Now().Truncate(time.Second), sent)
			time.Sleep(900 * time.Millisecond) // on the way back
			for i := range 100 {
				late, ok := tab.Late()
				if ahead := time.Until(late); !ok || ahead < 0 || ahead > time.Duration(i)*4*time.Second+5*time.Second {
					t.Fatalf("rate %v: %v ahead after %d s", rate, ahead, 10*i)
				}
				time.Sleep(10 * time.Second)
			}
			before, _ := tab.Late()
			tab.listen(time.Time{}, clk.Now())             // an answer without a date
			tab.listen(time.Now().Add(-time.Hour), sent-1) // and one that was overtaken
			if after, _ := tab.Late(); after.Before(before) {
				t.Error("it went back")
			}
		})
	}
}

// Apart is never more than the clocks are apart, and less by two seconds at most, however long the last answer is past.
func TestApart(t *testing.T) {
	for _, apart := range []time.Duration{0, 500 * time.Millisecond, 5 * time.Second, -5 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			clk := clocktest.New(0)
			tab := New(silent{}, "t", Options{Clock: clk})
			defer tab.Close()
			if _, ok := tab.Apart(); ok {
				t.Error("known before the first answer")
			}
			for i := range 20 {
				sent := clk.Now()
				time.Sleep(time.Duration(i) * 40 * time.Millisecond) // on the way
				date := time.Now().Add(apart).Truncate(time.Second)
				time.Sleep(time.Duration(20-i) * 10 * time.Millisecond) // on the way back
				tab.listen(date, sent)
				time.Sleep(13 * time.Second)
				got, ok := tab.Apart()
				if want := apart.Abs(); !ok || got > want || got < want-2*time.Second {
					t.Errorf("%v apart: %v, %v", apart, got, ok)
				}
			}
		})
	}
}

func TestSize(t *testing.T) {
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	n := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
	for want, row := range map[int]Row{
		0:  nil,
		5:  {"key": s("ab")},
		6:  {"a": s("é日")},
		2:  {"n": n("0")},
		3:  {"n": n("10")},
		11: {"token": n("179525599")},
		4:  {"nn": n("-1.50")},
		8:  {"b": &types.AttributeValueMemberB{Value: make([]byte, 7)}},
		7:  {"ll": &types.AttributeValueMemberL{Value: []types.AttributeValue{s("a")}}},
		10: {"mmm": &types.AttributeValueMemberM{Value: Row{"x": s("yz")}}},
		9:  {"sets12": &types.AttributeValueMemberSS{Value: []string{"ab", "c"}}},
	} {
		if got := Size(row); got != want {
			t.Errorf("%v: %d bytes, want %d", row, got, want)
		}
	}
}
