package dynamotables

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store"
)

// slowRoad is a client whose first update of a row, or of a companion, is under way long after its connection was lost.
type slowRoad struct {
	Client
	key       string // the partition key's attribute
	companion bool

	mu     sync.Mutex
	arrive func(context.Context) error // nil until the update was asked for
	copies int
}

func (s *slowRoad) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	k, _ := in.Key[s.key].(*types.AttributeValueMemberS)
	if k == nil || strings.HasPrefix(k.Value, companionPrefix) != s.companion {
		return s.Client.UpdateItem(ctx, in, opts...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copies++
	if s.arrive != nil {
		return s.Client.UpdateItem(ctx, in, opts...)
	}
	s.arrive = func(ctx context.Context) error {
		_, err := s.Client.UpdateItem(ctx, in)
		return err
	}
	return nil, io.ErrUnexpectedEOF
}

// What makes a row, or a companion, is sent once: a first copy that comes after the record was deleted would bring it back.
func TestALateCreationBringsNothingBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for what, companion := range map[string]bool{"row": false, "companion": true} {
			slow := &slowRoad{Client: w.client, key: w.kind.key, companion: companion}
			s, err := w.kind.open(slow, w.name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			claim := ours(what, 5, "")
			rec, err := s.Put(t.Context(), claim)
			if err == nil {
				if err := s.Delete(t.Context(), what, rec.Version); err != nil {
					t.Fatal(err)
				}
				late := slow.arrive(t.Context())
				if back, err := s.Get(t.Context(), what); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("the %s came late, to %v, after the record was deleted, and made %+v: %v", what, late, back, err)
				}
				continue
			}
			if !errors.Is(err, store.ErrUnknownOutcome) || slow.copies != 1 {
				t.Errorf("the %s is late: %v after %d copies, want an unknown outcome after 1", what, err, slow.copies)
			}
			if err := slow.arrive(t.Context()); err != nil {
				t.Errorf("the late %s was not carried out, so that nothing was tried: %v", what, err)
			}
			if got := mustGet(t, w, what); got.Nonce != claim.Nonce || got.Token != claim.Token {
				t.Errorf("%+v, want what the late %s completes", got, what)
			}
		}
	})
}
