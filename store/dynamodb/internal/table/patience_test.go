package table

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold/leasehold/clock/clocktest"
)

// late is a client whose answers come that late.
type late struct {
	Client
	by *time.Duration
}

func (l late) await(ctx context.Context) error {
	select {
	case <-time.After(*l.by):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l late) PutItem(ctx context.Context, _ *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return &dynamodb.PutItemOutput{}, l.await(ctx)
}

func (l late) GetItem(ctx context.Context, _ *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{}, l.await(ctx)
}

// A write is awaited for as long as its caller waits. A read is made again after 2 s, and awaited longer then, and at first by the next
// calls, too, until answers come soon.
func TestFinding_L1_ALateAnswerIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		by := 9 * time.Second
		attempts := 0
		tab := New(late{by: &by}, "t", Options{Clock: clocktest.New(0), OnRequest: func(Request) { attempts++ }})
		defer tab.Close()
		ask := func(what string, want int, do func() error) {
			t.Helper()
			if attempts = 0; do() != nil || attempts != want {
				t.Errorf("%s: %d attempts, want %d", what, attempts, want)
			}
		}
		put := func() error { return tab.Put(t.Context(), nil, nil, Cond{}, nil) }
		get := func() error { _, err := tab.Get(t.Context(), nil); return err }
		ask("a late write", 1, put)
		ask("a late read", 4, get) // 2, 4, 8 and 16 s
		ask("the next one", 1, get)
		by = time.Millisecond
		for range 3 {
			ask("a read", 1, get)
		}
		by = 3 * time.Second
		ask("a late read", 2, get)
	})
}
