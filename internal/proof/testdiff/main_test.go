package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written writes a run: the outcome of each test, or "" for one that doesn't end.
func written(t *testing.T, outcomes map[string]string) string {
	t.Helper()
	var b strings.Builder
	for test, outcome := range outcomes {
		fmt.Fprintf(&b, "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":%q}\nnoise\n", test)
		if outcome != "" {
			fmt.Fprintf(&b, "{\"Action\":%q,\"Package\":\"p\",\"Test\":%q,\"Elapsed\":0.1}\n", outcome, test)
		}
	}
	b.WriteString(`{"Action":"fail","Package":"p"}`)
	file := filepath.Join(t.TempDir(), "run.json")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCompare(t *testing.T) {
	type m = map[string]string
	for name, tc := range map[string]struct {
		before, after []m
		worse         string // in the error
		says          []string
	}{
		"the same":                     {[]m{{"A": "pass", "B": "fail", "C": "skip"}}, []m{{"A": "pass", "B": "fail", "C": "skip"}}, "", []string{"| `p B` | fail | fail |"}},
		"one fails with it":            {[]m{{"A": "pass"}}, []m{{"A": "fail"}}, "p A", []string{"| `p A` | pass | fail |"}},
		"a part of one fails with it":  {[]m{{"A": "fail", "A/x": "pass"}}, []m{{"A": "fail", "A/x": "fail"}}, "p A/x", nil},
		"one fails without it":         {[]m{{"A": "fail"}}, []m{{"A": "pass"}}, "", []string{"| `p A` | fail | pass |"}},
		"one is gone":                  {[]m{{"A": "pass", "B": "pass"}}, []m{{"A": "pass"}}, "p B", []string{"| `p B` | pass | not there |"}},
		"one is new":                   {[]m{{"A": "pass"}}, []m{{"A": "pass", "B": "pass"}}, "", []string{"| `p B` | not there | pass |"}},
		"the process dies with it":     {[]m{{"A": "pass"}}, []m{{"A": ""}}, "p A", []string{"| `p A` | pass | cut off |"}},
		"one fails with it, sometimes": {[]m{{"A": "pass"}, {"A": "pass"}}, []m{{"A": "fail"}, {"A": "pass"}}, "", []string{"| `p A` | pass | differs from run to run |"}},
		"one fails with it, always":    {[]m{{"A": "pass"}, {"A": "pass"}}, []m{{"A": "fail"}, {"A": "fail"}}, "p A", nil},
		"one that is begun in one run": {[]m{{"A": "pass"}, {"A": "pass", "B": "pass"}}, []m{{"A": "pass"}}, "", []string{"| `p B` | differs from run to run | not there |"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := make([]string, 2)
			for i, runs := range [][]m{tc.before, tc.after} {
				var files []string
				for _, r := range runs {
					files = append(files, written(t, r))
				}
				args[i] = []string{"without", "with"}[i] + "=" + strings.Join(files, ":")
			}
			var out strings.Builder
			err := run(args, &out)
			if (err != nil) != (tc.worse != "") || err != nil && !strings.HasSuffix(err.Error(), ": "+tc.worse) {
				t.Errorf("%v, want %q", err, tc.worse)
			}
			for _, text := range tc.says {
				if !strings.Contains(out.String(), text) {
					t.Errorf("want %s in\n%s", text, out.String())
				}
			}
		})
	}
	if err := run([]string{"a=" + written(t, nil), "b=" + written(t, nil)}, &strings.Builder{}); err == nil {
		t.Error("runs without a test are the same")
	}
}
