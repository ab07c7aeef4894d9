package admiral_test

import (
	"errors"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const patchFile = "../../contrib/admiral/leasehold-state-checker.patch"

// TestPatchIsOurs: the patch for Admiral has no line of Admiral's, names the commit that it is for,
// and uses what is exported here.
func TestPatchIsOurs(t *testing.T) {
	b, err := os.ReadFile(patchFile)
	if err != nil {
		t.Fatal(err)
	}
	head, diff, _ := strings.Cut(string(b), "diff --git ")
	if !regexp.MustCompile(`(?m)^For \S+ at commit [0-9a-f]{40}:$`).MatchString(head) {
		t.Errorf("it names no commit:\n%s", head)
	}
	files := map[string]string{}
	name := ""
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+++ b/"):
			name = strings.TrimPrefix(line, "+++ b/")
		case strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "-"), strings.HasPrefix(line, " "), strings.HasPrefix(line, "@@") && !strings.HasSuffix(line, "@@"):
			t.Errorf("%s: a line of Admiral's: %q", name, line)
		case strings.HasPrefix(line, "+"):
			files[name] += line[1:] + "\n"
		}
	}
	exported := ""
	for _, list := range []string{"compat/admiral", "store/dynamodb/dynamotables", "store", "store/memory"} {
		b, err := os.ReadFile("../../api/" + list + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		exported += string(b)
	}
	uses := regexp.MustCompile(`\b(?:leasehold|dynamotables|store|memory)\.([A-Z]\w*)`)
	for name, text := range files {
		if !strings.HasPrefix(text, "package ") {
			continue // a part of one of Admiral's files
		}
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.AllErrors); err != nil {
			t.Error(err)
		}
		for _, use := range uses.FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`\b` + use[1] + `\b`).MatchString(exported) {
				t.Errorf("%s uses %s, which is not exported", name, use[0])
			}
		}
	}
	if len(files) != 4 {
		t.Errorf("%d files: %v", len(files), files)
	}
}

// TestPatchedAdmiral applies the patch to Admiral's source, compiles it, and runs the patch's test. It takes minutes, and fetches Admiral and its libraries.
func TestPatchedAdmiral(t *testing.T) {
	const variable = "LEASEHOLD_TEST_ADMIRAL"
	from := os.Getenv(variable)
	if from == "" {
		t.Skipf("not tried here, since it takes minutes: set %s to 1, or to the path of a clone of Admiral's repository", variable)
	}
	var args []string
	if from != "1" {
		args = append(args, from)
	}
	out, err := exec.CommandContext(t.Context(), "../../scripts/admiral-patch", args...).CombinedOutput()
	const noSource = 3
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == noSource {
		t.Skipf("not tried here: %s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
