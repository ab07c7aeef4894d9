package redis

import (
	"errors"
	"io"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/store"
)

// said is an error that a server answered.
type said string

func (e said) Error() string { return string(e) }
func (said) RedisError()     {}

// errAny stands for any error.
var errAny = errors.New("any")

// What came of a write is unknown where the connection broke before an answer, or before an answer that the replicas have it.
func TestWhichErrorsAreCertain(t *testing.T) {
	s := &Store{}
	there, err := marshalApart(store.Record{Key: "n", Owner: "o", Token: 7, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	found := make([]any, shown)
	found[0], found[atVersion], found[atRecord] = answerFound, "v", string(there)
	for name, c := range map[string]struct {
		w    write
		want error // nil: done
	}{
		"done":                          {write{answer: []any{answerDone}}, nil},
		"not there":                     {write{answer: []any{answerMissing}}, store.ErrNotFound},
		"no answer":                     {write{err: io.EOF, unknown: true}, store.ErrUnknownOutcome},
		"done, but replicas unknown":    {write{err: io.EOF, unknown: true, answer: []any{answerDone}}, store.ErrUnknownOutcome},
		"not sent":                      {write{err: io.EOF}, io.EOF},
		"refused":                       {write{err: said("NOAUTH no")}, said("NOAUTH no")},
		"not there, whatever came then": {write{err: io.EOF, unknown: true, answer: []any{answerMissing}}, store.ErrNotFound},
		"another was there":             {write{answer: found}, store.ErrConflict},
		"another, whatever came then":   {write{err: io.EOF, unknown: true, answer: found}, store.ErrConflict},
		"a hash that is no record":      {write{answer: append([]any{answerFound}, make([]any, shown-1)...)}, store.ErrCorrupt},
		"an empty answer":               {write{answer: []any{}}, errAny},
		"a novel answer":                {write{answer: []any{"novel"}}, errAny},
		"another type":                  {write{err: said("WRONGTYPE Operation against a key")}, store.ErrCorrupt},
	} {
		c.w.key = "n"
		err := s.outcome(&c.w)
		if c.want == errAny && err != nil {
			c.want = err
		}
		if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if errors.Is(err, store.ErrUnknownOutcome) != errors.Is(c.want, store.ErrUnknownOutcome) || errors.Is(err, store.ErrConflict) != (c.want == store.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct {
		err    error
		prefix string
		want   bool
	}{
		{said("NOAUTH no"), "", true}, {said("NOAUTH no"), "NOAUTH", true}, {said("ERR no"), "NOAUTH", false},
		{goredis.Nil, "", false}, {io.EOF, "", false}, {nil, "", false},
	} {
		if isRefusal(c.err, c.prefix) != c.want {
			t.Errorf("%v is the server's own %q: %v", c.err, c.prefix, !c.want)
		}
	}
}
