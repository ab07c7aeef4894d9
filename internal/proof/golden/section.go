// Package golden keeps the tables that tests write inside pages that people write.
package golden

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"testing"
)

var figures = regexp.MustCompile(`[0-9]+(\.[0-9]+)?( (µs|ms|s))?`)

// Check sees that the section of that name in file is text, apart from its figures, which differ
// from run to run; with update it writes it there. In the page it stands between comments:
//
//	<!-- name: written by command -->
//	<!-- end -->
func Check(t testing.TB, file, name, command string, text []byte, update bool) {
	t.Helper()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was := regexp.MustCompile(`(?s)<!-- ` + regexp.QuoteMeta(name) + `: .*?<!-- end -->\n`).Find(whole)
	if was == nil {
		t.Fatalf("%s has no section %q", file, name)
	}
	text = fmt.Appendf(nil, "<!-- %s: written by %s -->\n%s<!-- end -->\n", name, command, text)
	switch {
	case update:
		if err := os.WriteFile(file, bytes.Replace(whole, was, text, 1), 0o644); err != nil {
			t.Fatal(err)
		}
	case !bytes.Equal(figures.ReplaceAll(was, []byte("0")), figures.ReplaceAll(text, []byte("0"))):
		t.Errorf("%s is not what was measured: %s\n%s", file, command, text)
	}
}
