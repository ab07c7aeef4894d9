package admiral_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

func TestPrefix(t *testing.T) {
	st := memory.New(memory.Options{})
	claim := func(prefix, deployment, pod string) (string, error) {
		return admiral.ClaimPrefix(t.Context(), st, prefix, deployment, pod)
	}
	for _, c := range []struct{ prefix, deployment, pod, want string }{
		{"240.0", "prod", "east", "240.0"},
		{"240.0", "prod", "west", "240.0"}, // the passive one of the same deployment
		{"240.2", "stage", "east", "240.2"},
		{"auto", "prod", "east", "240.0"}, // it has one
		{"auto", "test", "east", "240.1"}, // the lowest that is free
		{"auto", "demo", "east", "240.3"},
		{"auto", "demo", "west", "240.3"},
		{"255.255", "old", "east", "255.255"},
	} {
		got, err := claim(c.prefix, c.deployment, c.pod)
		if err != nil || got != c.want {
			t.Errorf("%s for %s: %s, %v", c.prefix, c.deployment, got, err)
		}
	}
	_, err := claim("240.0", "stage", "north")
	taken := new(admiral.PrefixTakenError)
	if !errors.As(err, &taken) || taken.By != "prod" || taken.Pod != "east" || !strings.Contains(err.Error(), `"prod"`) {
		t.Fatalf("%v", err)
	}
	for _, bad := range []string{"10.0", "239.1", "127.0", "0.0", "", "240", "240.0.0", "240.256", "240.-1", "240.00", "240.0 ", "x.y", "AUTO"} {
		if _, err := claim(bad, "prod", "east"); err == nil || !strings.Contains(err.Error(), "se_ip_prefix") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// A deployment that is gone is taken off as the error says.
	rec, err := st.Get(t.Context(), "se_ip_prefix/240.0")
	if err != nil || uint64(rec.Token) != taken.Token {
		t.Fatal(rec, err)
	}
	if _, err := drive.Free(t.Context(), st, clock.System(), rec.Key, drive.EndTerm{Token: rec.Token, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	if got, err := claim("auto", "new", "east"); err != nil || got != "240.0" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestPrefixesAtOnce: deployments that start together get different ones.
func TestPrefixesAtOnce(t *testing.T) {
	db := memory.NewDB(memory.Options{})
	got := make([]string, 40)
	var wg sync.WaitGroup
	for n := range got {
		wg.Go(func() {
			var err error
			if got[n], err = admiral.ClaimPrefix(t.Context(), db.Open(), "auto", fmt.Sprint("d", n/2), fmt.Sprint("pod", n%2)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	whose := map[string]int{}
	for n, prefix := range got {
		if other, ok := whose[prefix]; ok && other != n/2 {
			t.Errorf("%s belongs to d%d and d%d", prefix, other, n/2)
		}
		whose[prefix] = n / 2
	}
}

func TestAllPrefixesTaken(t *testing.T) {
	st := memory.New(memory.Options{})
	for n := range 4096 {
		rec := store.Record{Key: fmt.Sprintf("se_ip_prefix/%d.%d", 240+n/256, n%256), Owner: fmt.Sprint("d", n), Token: 1, TTL: store.MaxTTL}
		if n == 4095 {
			rec.Owner = ""
		}
		if _, err := st.Put(context.Background(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := admiral.ClaimPrefix(t.Context(), st, "auto", "last", "p"); err != nil || got != "255.255" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := admiral.ClaimPrefix(t.Context(), st, "auto", "one more", "p"); err == nil || !strings.Contains(err.Error(), "all prefixes") {
		t.Errorf("%v", err)
	}
}
