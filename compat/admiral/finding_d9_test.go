package admiral_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// A deployment has one prefix: a pod with another flag is refused, and changes nothing.
func TestFinding_D9_OnePrefixForADeployment(t *testing.T) {
	st := memory.New(memory.Options{})
	if _, err := admiral.ClaimPrefix(t.Context(), st, "240.7", "prod", "east"); err != nil {
		t.Fatal(err)
	}
	changed := new(admiral.PrefixChangedError)
	for _, other := range []string{"240.1", "240.9"} {
		_, err := admiral.ClaimPrefix(t.Context(), st, other, "prod", "west")
		if !errors.As(err, &changed) || changed.Has != "240.7" || !strings.Contains(err.Error(), "leasehold release se_ip_prefix/240.7 --token") {
			t.Errorf("%s: %v", other, err)
		}
		if rec, err := store.Load(t.Context(), st, "se_ip_prefix/"+other); err != nil || rec.Owner != "" {
			t.Errorf("%+v, %v: %s was claimed", rec, err, other)
		}
	}
	rec, err := st.Get(t.Context(), "se_ip_prefix/240.7")
	if err != nil || uint64(rec.Token) != changed.Token {
		t.Fatal(rec, err)
	}
	if _, err := drive.Free(t.Context(), st, clock.System(), rec.Key, drive.EndTerm{Token: rec.Token, By: "ada"}); err != nil { // as the error says
		t.Fatal(err)
	}
	if got, err := admiral.ClaimPrefix(t.Context(), st, "240.1", "prod", "west"); err != nil || got != "240.1" {
		t.Errorf("%s, %v", got, err)
	}
}

// late is a store on which somebody else claims a prefix just before the first write.
type late struct {
	store.Store
	before func()
	done   atomic.Bool
}

func (l *late) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if l.done.CompareAndSwap(false, true) {
		l.before()
	}
	return l.Store.Put(ctx, rec)
}

// Two pods of one deployment that claim two prefixes at once: one of them gives its own back.
func TestFinding_D9_TwoPrefixesAtOnce(t *testing.T) {
	for _, theirs := range []string{"240.3", "240.8"} {
		st := memory.New(memory.Options{})
		_, err := admiral.ClaimPrefix(t.Context(), &late{Store: st, before: func() {
			if _, err := admiral.ClaimPrefix(t.Context(), st, theirs, "prod", "west"); err != nil {
				t.Error(err)
			}
		}}, "240.5", "prod", "east")
		if changed := new(admiral.PrefixChangedError); !errors.As(err, &changed) || changed.Has != theirs {
			t.Errorf("240.5 beside %s: %v", theirs, err)
		}
		if mine, err := store.Load(t.Context(), st, "se_ip_prefix/240.5"); err != nil || mine.Owner != "" {
			t.Errorf("240.5 beside %s: %q has it, %v", theirs, mine.Owner, err)
		}
	}
}
