package dynamodb

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// What a write came to is what was there instead, or nothing where nothing was; what is unknown stays so, and no failure is a success.
func TestWhichErrorsAreCertain(t *testing.T) {
	s := &Store{table: table.New(nil, "t", table.Options{})}
	rec := plain("db1", 2)
	spoilt := s.encode(rec)
	spoilt[attrToken] = &types.AttributeValueMemberS{Value: "many"}
	other := errors.New("access denied")
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"another record was there":    {&table.RefusedError{Row: s.encode(rec)}, store.ErrConflict},
		"none was there":              {&table.RefusedError{}, store.ErrNotFound},
		"what was there is no record": {&table.RefusedError{Row: spoilt}, store.ErrCorrupt},
		"unknown":                     {fmt.Errorf("%w: no answer", store.ErrUnknownOutcome), store.ErrUnknownOutcome},
		"refused":                     {other, other},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			out := s.outcome(rec.Key, err)
			for _, is := range []error{store.ErrConflict, store.ErrNotFound, store.ErrCorrupt, store.ErrUnknownOutcome, other} {
				if errors.Is(out, is) != (is == c.want) {
					t.Errorf("%s: %v, want %v", name, out, c.want)
				}
			}
			if found := new(store.ConflictError); errors.As(out, &found) && (found.Current.Version != rec.Version || found.Current.Token != rec.Token) {
				t.Errorf("%s: the conflict shows %+v, want %+v", name, found.Current, rec)
			}
		}
	}
	if out := s.outcome("n", fmt.Errorf("%w: no answer", store.ErrUnknownOutcome)); out.Error() != "n: "+store.ErrUnknownOutcome.Error()+": no answer" {
		t.Errorf("%v, want the key of the write in front", out)
	}
}
