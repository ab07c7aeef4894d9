package lease_test

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

type promising struct {
	store.Store
	fencing store.Fencing
}

func (p promising) Properties() store.Properties {
	return store.Properties{Engine: "promising", Fencing: p.fencing}
}

type silent struct{ store.Store }

// A store whose tokens are worth less than is demanded is refused when the manager is made, not when it has failed over.
func TestManagerRefusesAStoreWithLessFencing(t *testing.T) {
	mem := memory.New(memory.Options{})
	defer mem.Close()
	for name, c := range map[string]struct {
		st   store.Store
		want store.Fencing
		says string
	}{
		"linearizable":             {mem, store.FencingLinearizable, ""},
		"more than is demanded":    {mem, store.FencingPerPrimary, ""},
		"nothing is demanded":      {silent{mem}, "", ""},
		"per primary will do":      {promising{mem, store.FencingPerPrimary}, store.FencingPerPrimary, ""},
		"per primary won't do":     {promising{mem, store.FencingPerPrimary}, store.FencingLinearizable, "tokens of promising are good per primary"},
		"it doesn't say":           {silent{mem}, store.FencingLinearizable, "doesn't say"},
		"not a kind there ever is": {promising{mem, store.FencingPerPrimary}, "total", `want "linearizable"`},
	} {
		m, err := lease.NewManager(c.st, lease.Options{Fencing: c.want})
		switch {
		case c.says == "" && err != nil, c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			m.Close()
		}
	}
}
