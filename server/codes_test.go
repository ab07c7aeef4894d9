package server_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/api"
)

// docs/server-reference.md has every code, with its status and what it means.
func TestCodesAreDocumented(t *testing.T) {
	codes := api.Codes()
	slices.SortFunc(codes, func(a, b api.Code) int { return cmp.Or(cmp.Compare(a.Status(), b.Status()), cmp.Compare(a, b)) })
	var table strings.Builder
	table.WriteString("| status | code | means |\n|---|---|---|\n")
	for _, c := range codes {
		fmt.Fprintf(&table, "| %d | `%s` | %s |\n", c.Status(), c, api.NewProblem(c, "").Title)
	}
	if text, err := os.ReadFile("../docs/server-reference.md"); err != nil || !strings.Contains(string(text), table.String()) {
		t.Errorf("docs/server-reference.md: %v: want this table in it:\n%s", err, table.String())
	}
}
