package fencesql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencesql"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		d    fencesql.Dialect
		name string
		says string
	}{
		{fencesql.PostgreSQL, "marks", ""},
		{fencesql.SQLite, "main.Marks_2", ""},
		{0, "marks", "dialect 0: want fencesql.PostgreSQL or fencesql.SQLite"},
		{3, "marks", "dialect 3"},
		{fencesql.SQLite, "", `table ""`},
		{fencesql.SQLite, "a b", `table "a b"`},
		{fencesql.SQLite, "a;DROP TABLE b", "want ASCII letters"},
		{fencesql.SQLite, "a.b.c", "perhaps after a schema and a dot"},
		{fencesql.SQLite, "1a", "table"},
		{fencesql.SQLite, "a\n", "table"},
	} {
		_, err1 := fencesql.NewTable(c.d, c.name)
		_, err2 := fencesql.NewColumns(c.d, c.name)
		for _, err := range []error{err1, err2} {
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v %q: %v, want %q", c.d, c.name, err, c.says)
			}
		}
	}
}

func TestFragment(t *testing.T) {
	s := fence.Sequencer{Name: "n", Holder: "a", Token: 5}
	for d, want := range map[fencesql.Dialect][2]string{
		fencesql.PostgreSQL: {
			"fence_token = $3, fence_holder = $4",
			"(app.accounts.fence_token >= 0 AND (app.accounts.fence_token < $3 OR app.accounts.fence_token = $3 AND app.accounts.fence_holder = $4))",
		},
		fencesql.SQLite: {
			"fence_token = ?3, fence_holder = ?4",
			"(app.accounts.fence_token >= 0 AND (app.accounts.fence_token < ?3 OR app.accounts.fence_token = ?3 AND app.accounts.fence_holder = ?4))",
		},
	} {
		c, err := fencesql.NewColumns(d, "app.accounts")
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.Fragment(s, 3)
		if err != nil || f.Set != want[0] || f.Where != want[1] || len(f.Args) != 2 || f.Args[0] != int64(5) || f.Args[1] != "a" {
			t.Errorf("%v: %+v, %v", d, f, err)
		}
		if _, err := c.Fragment(s, 0); err == nil || !strings.Contains(err.Error(), "first argument 0") {
			t.Errorf("%v: %v", d, err)
		}
		if _, err := c.Fragment(fence.Sequencer{Name: "n", Holder: "a", Token: fence.MaxToken + 1}, 1); !errors.Is(err, fence.ErrMalformed) {
			t.Errorf("%v: %v", d, err)
		}
	}
}
