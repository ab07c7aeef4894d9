package archtest_test

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/leasehold/leasehold/internal/proof/archtest"
)

var update = flag.Bool("update", false, "write what is measured here into the files that keep it")

// The baseline has the places that were there when the rule came, by their words, so that code may move. It only shrinks.
const baseline = "testdata/words.txt"

func TestWordsOfTheCode(t *testing.T) {
	found, err := archtest.Words(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		lines := map[string]bool{}
		for _, p := range found {
			lines[p.Text] = true
		}
		text := strings.Join(slices.Sorted(maps.Keys(lines)), "\n")
		if err := os.WriteFile(baseline, []byte(strings.TrimLeft(text+"\n", "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(baseline)
	if err != nil {
		t.Fatal(err)
	}
	granted := strings.Split(string(text), "\n")
	for _, p := range found {
		if !slices.Contains(granted, p.Text) {
			t.Errorf("%s: banned by .vale/styles/Leasehold/Banned.yml: name who acts, or say it shorter", p)
		}
	}
	for _, line := range granted {
		if line != "" && !slices.ContainsFunc(found, func(p archtest.Problem) bool { return p.Text == line }) {
			t.Logf("%s grants what is mended: %q; run go test ./internal/proof/archtest -run TestWordsOfTheCode -update", baseline, line)
		}
	}
}

func TestWords(t *testing.T) {
	const head = "// Package p is for those who wait.\npackage p\n\n"
	files := fstest.MapFS{
		".vale/styles/Leasehold/Banned.yml": {Data: []byte("level: error\ntokens:\n  - those who\n  - goes on\n")},
		"lease/lease.go": {Data: []byte(head + `
// Run goes
// on until the end.
func Run() error { return errors.New("the work " + "goes on") }

// hidden goes on.
func hidden() {}

// It goes onto a page, and there is nothing wrong.
type Options struct {
	Wait int // it goes on
	wait int // it goes on
}
`)},
		"internal/drive/drive.go":      {Data: []byte(head + "var s = `Those who`\n")},
		"internal/proof/sim/sim.go":    {Data: []byte(head + "var s = `those who`\n")},
		"lease/lease_test.go":          {Data: []byte(head + "var s = `those who`\n")},
		"examples/embedded/main.go":    {Data: []byte(head)},
		"lease/internal/parts/part.go": {Data: []byte(head)},
		"server/web/ui/words.js":       {Data: []byte("// a\nconst text = 'the session goes on';\n")},
		"server/openapi.yaml":          {Data: []byte("description: those who wait\n")},
	}
	found, err := archtest.Words(files)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range found {
		got = append(got, p.String())
	}
	slices.Sort(got)
	want := []string{
		"internal/drive/drive.go:4: Those who",
		"lease/lease.go:14: it goes on",
		"lease/lease.go:1: p is for those who wait.",
		"lease/lease.go:5: Run goes on until the end.",
		"lease/lease.go:7: the work goes on",
		"server/openapi.yaml:1: description: those who wait",
		"server/web/ui/words.js:2: = 'the session goes on';",
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
