package postgres

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

// Records that are confirmed at the same time share statements, and each caller gets its own record, or its own error.
func TestConfirmsTogether(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	s, seen := traced(t, srv.URL, Options{Table: newTable(t, srv.URL)})
	const n = 200
	want := map[string]string{} // versions
	for i := range n {
		key := fmt.Sprintf("k%03d", i)
		switch {
		case i%10 == 3: // isn't there
		case i%10 == 7: // somebody has written something else
			_, err := s.pool.Exec(t.Context(), "INSERT INTO "+s.opts.Table+" (key, version, record, written) VALUES ($1, 'x', '[]', now())", key)
			if err != nil {
				t.Fatal(err)
			}
		default:
			rec, err := s.Put(t.Context(), held(key, 1))
			if err != nil {
				t.Fatal(err)
			}
			want[key] = rec.Version
		}
	}
	before := seen.queries.Load()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			key := fmt.Sprintf("k%03d", i)
			rec, err := s.Confirm(t.Context(), key)
			switch {
			case i%10 == 3 && !errors.Is(err, store.ErrNotFound), i%10 == 7 && !errors.Is(err, store.ErrCorrupt):
				t.Errorf("%s: %+v, %v", key, rec, err)
			case want[key] != "" && (err != nil || rec.Key != key || rec.Version != want[key]):
				t.Errorf("%s: %+v, %v; want version %s", key, rec, err, want[key])
			}
		})
	}
	all.Wait()
	if asked := seen.queries.Load() - before; asked > n/4 {
		t.Errorf("%d statements for %d records at once", asked, n)
	} else {
		t.Logf("%d statements for %d records", asked, n)
	}
	// After an error each has it.
	s.pool.Close()
	group := []*confirmation{{key: "k000"}, {key: "k001"}}
	for s.confirmTogether(t.Context(), group); len(group) > 0; group = group[1:] {
		if group[0].err == nil {
			t.Errorf("%s is confirmed without a connection: %+v", group[0].key, group[0].rec)
		}
	}
}
