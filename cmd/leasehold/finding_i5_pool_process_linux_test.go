package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/leasehold/leasehold/internal/api"
)

// A server has its number for ids of a layout that is described, as for those of one with a name, from the pool of --id-pool.
func TestFinding_I5_APoolForALayoutThatIsDescribed(t *testing.T) {
	const layout = "epoch=2026-01-01,unit=1ms,time=41,node=10,sequence=12"
	p := newPlace(t)
	p.must("id", "assign", "numbers", "--range", "500-600", "--", "true")
	p.must("id", "assign", "named", "--range", "700-800", "--", "true")
	s := p.serve("--id-pool", layout+"=numbers", "--id-pool", "twitter=named")
	for layout, from := range map[string]uint64{layout: 500, "twitter": 700} {
		status, text := s.ask(http.MethodGet, "/v1/ids/"+url.PathEscape(layout), "", "")
		var ids api.IDs
		if err := json.Unmarshal([]byte(text), &ids); err != nil || status != http.StatusOK || ids.Node < from || ids.Node > from+100 {
			t.Errorf("%s: %d %s, want ids of one of the pool's numbers, %d to %d", layout, status, text, from, from+100)
		}
	}
}
