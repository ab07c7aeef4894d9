package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tallied runs the real go test over a module made of files.
func tallied(t *testing.T, files map[string]string, args ...string) (ok bool, report string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module m\n\ngo 1.26.0\n"
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	var out, errs bytes.Buffer
	ok, err := run(t.Context(), dir, append(args, "./..."), &out, &errs)
	if err != nil {
		t.Fatal(err)
	}
	return ok, errs.String() + out.String()
}

const head = "package p\nimport \"testing\"\n"

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		args  []string
		ok    bool
		last  string   // line
		says  []string // and nothing of hides
		hides []string
	}{
		{
			name: "passing, skipping, subtests",
			files: map[string]string{"a_test.go": head + `
				func TestA(t *testing.T) { t.Log("chatter"); t.Run("x", func(t *testing.T) {}); t.Run("y", func(t *testing.T) {}) }
				func TestB(t *testing.T) { t.Skip("no such device") }`},
			ok: true, last: "2 passed, 0 failed, 1 skipped", says: []string{"ok    m ", "\nskipped: 1 × no such device\n"}, hides: []string{"chatter"},
		},
		{
			name: "failing subtest counts once",
			files: map[string]string{"a_test.go": head + `
				func TestA(t *testing.T) { t.Run("x", func(t *testing.T) { t.Error("broken bone") }); t.Run("y", func(t *testing.T) {}) }
				func TestB(t *testing.T) { t.Log("chatter") }`},
			last: "2 passed, 1 failed, 0 skipped", says: []string{"FAIL  m ", "broken bone"}, hides: []string{"chatter"},
		},
		{
			name: "parent fails by itself",
			files: map[string]string{"a_test.go": head + `
				func TestA(t *testing.T) { t.Run("x", func(t *testing.T) {}); t.Error("afterwards") }`},
			last: "1 passed, 1 failed, 0 skipped", says: []string{"afterwards"},
		},
		{
			name:  "panic",
			files: map[string]string{"a_test.go": head + `func TestA(t *testing.T) {}; func TestB(t *testing.T) { panic("at the disco") }`},
			last:  "1 passed, 1 failed, 0 skipped", says: []string{"panic: at the disco"},
		},
		{
			name:  "time-out",
			files: map[string]string{"a_test.go": head + `func TestA(t *testing.T) {}; func TestB(t *testing.T) { <-t.Context().Done() }`},
			args:  []string{"-timeout=1s"},
			last:  "1 passed, 1 failed, 0 skipped", says: []string{"panic: test timed out after 1s"},
		},
		{
			name:  "exit in a test",
			files: map[string]string{"a_test.go": "package p\nimport (\"os\"; \"testing\")\n" + `func TestA(t *testing.T) { os.Exit(3) }`},
			last:  "0 passed, 1 failed, 0 skipped",
		},
		{
			name: "failure outside the tests",
			files: map[string]string{"a_test.go": "package p\nimport (\"os\"; \"testing\")\n" +
				`func TestA(t *testing.T) {}; func TestMain(m *testing.M) { m.Run(); println("leak"); os.Exit(1) }`},
			last: "1 passed, 1 failed, 0 skipped", says: []string{"leak"},
		},
		{
			name: "no build",
			files: map[string]string{
				"a/a.go": "package a\nvar A int = \"text\"\n", "a/a_test.go": "package a\n",
				"b/b_test.go": "package b\nimport (\"m/a\"; \"testing\")\nfunc TestB(t *testing.T) { _ = a.A }\n",
				"c/c_test.go": "package c\nimport \"testing\"\nfunc TestC(t *testing.T) {}\n",
			},
			last: "1 passed, 2 failed, 0 skipped", says: []string{"FAIL  m/a ", "FAIL  m/b ", "cannot use \"text\"", "ok    m/c "},
		},
		{
			name:  "no test at all",
			files: map[string]string{"a.go": "package a\n"},
			last:  "0 passed, 0 failed, 0 skipped", says: []string{"m  no tests"},
		},
		{
			name:  "go test refuses",
			files: map[string]string{"a_test.go": head + "func TestA(t *testing.T) {}"},
			args:  []string{"-nosuchflag=1"},
			last:  "0 passed, 1 failed, 0 skipped", says: []string{"nosuchflag"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			ok, report := tallied(t, c.files, c.args...)
			lines := strings.Split(strings.TrimSpace(report), "\n")
			if last := lines[len(lines)-1]; ok != c.ok || last != c.last {
				t.Errorf("got %v and %q, want %v and %q", ok, last, c.ok, c.last)
			}
			for _, s := range c.says {
				if !strings.Contains(report, s) {
					t.Errorf("the report does not say %q", s)
				}
			}
			for _, s := range c.hides {
				if strings.Contains(report, s) {
					t.Errorf("the report says %q", s)
				}
			}
			if t.Failed() {
				t.Log(report)
			}
		})
	}
}

// Of a long log only the end is kept: what failed stands there, after all else, and not so long that its beginning is lost.
func TestWhatFailedIsToldAtTheEnd(t *testing.T) {
	_, report := tallied(t, map[string]string{
		"a/a_test.go": head + `func TestA(t *testing.T) { t.Error("broken bone"); for i := range 1000 { t.Logf("line %d.", i) } }`,
		"b/b_test.go": head + `func TestB(t *testing.T) { t.Log("chatter") }`,
	})
	_, end, ok := strings.Cut(report, "\nwhat failed, again:\n")
	if !ok {
		t.Fatalf("nothing is told again:\n%s", report)
	}
	for _, s := range []string{"FAIL  m/a\n", "broken bone", "line 0.", "line 999.", "--- FAIL: TestA", "lines, which are above\n"} {
		if !strings.Contains(end, s) {
			t.Errorf("the end does not say %q", s)
		}
	}
	if lines := strings.Count(end, "\n"); lines < 200 || lines > 220 {
		t.Errorf("%d lines", lines)
	}
	if strings.Contains(end, "line 500.") || !strings.Contains(report, "line 500.") {
		t.Error("line 500 has to be told the first time, and no other")
	}
	if !strings.HasSuffix(end, "\n1 passed, 1 failed, 0 skipped\n") {
		t.Errorf("it ends with %q", end[max(0, len(end)-100):])
	}
}

func TestAStreamThatBreaksOffIsAFailure(t *testing.T) {
	var out bytes.Buffer
	tally := newTally(&out)
	stream := `{"Action":"run","Package":"m","Test":"TestA"}
{"Action":"pass","Package":"m","Test":"TestA"}
{"Action":"run","Package":"m","Test":"TestB"}
not an event
`
	if err := tally.read(strings.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	if tally.passed != 1 || tally.failed != 1 || !strings.Contains(out.String(), "not an event") {
		t.Errorf("got %d passed, %d failed:\n%s", tally.passed, tally.failed, &out)
	}
}

// Skipped tests are counted by their reasons, wherever they are: 50 tests of an engine whose server is missing are one line.
func TestSkippedTestsAreCountedByReason(t *testing.T) {
	skips := func(pkg string) string {
		return "package " + pkg + "\nimport \"testing\"\nfunc TestA(t *testing.T) {}\n" +
			"func TestB(t *testing.T) { t.Skip(\"etcd is missing\") }\n\nfunc TestC(t *testing.T) { t.Skip(\"etcd is missing\") }\nfunc TestD(t *testing.T) { t.Skip(\"redis is missing\") }\n"
	}
	ok, report := tallied(t, map[string]string{"a/a_test.go": skips("a"), "b/b_test.go": skips("b")})
	if want := "\nskipped: 4 × etcd is missing\nskipped: 2 × redis is missing\n2 passed, 0 failed, 6 skipped\n"; !ok || !strings.HasSuffix(report, want) {
		t.Errorf("%v: it doesn't end with %q:\n%s", ok, want, report)
	}
	if n := strings.Count(report, "etcd is missing"); n != 1 {
		t.Errorf("it says %d times that etcd is missing:\n%s", n, report)
	}
}

// What go test is given by hand stays as it is.
func TestFlagsOfGoTest(t *testing.T) {
	for args, p := range map[string]bool{"-race ./...": true, "-p 1 ./...": false, "-p=8 ./...": false, "--p=8": false, "-parallel 3": true, "-run -p": false} {
		more := strings.Join(flags(strings.Fields(args)), " ")
		if got := strings.Contains(more, "-p="); got != p {
			t.Errorf("%s gets %q", args, more)
		}
	}
	if more := flags([]string{"-exec", "true"}); len(more) != 1 {
		t.Errorf("-exec gets %q", more)
	}
}
