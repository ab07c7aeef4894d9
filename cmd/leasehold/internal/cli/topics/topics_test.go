package topics

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

// A topic fits a terminal, and says where there is more to read: a page that is there.
func TestTopics(t *testing.T) {
	pages := filepath.Join("..", "..", "..", "..", "..")
	total := 0
	for _, name := range Names() {
		text, ok := Text(name)
		if !ok {
			t.Fatal(name)
		}
		total += len(text)
		for i, line := range strings.Split(text, "\n") {
			if len([]rune(line)) > 92 {
				t.Errorf("%s:%d has more than 92 columns", name, i+1)
			}
		}
		_, more, found := strings.Cut(text, "\nMore: ")
		if !found || strings.Count(text, "\n") > 40 {
			t.Errorf("%s: want 40 lines at most, and where there is more", name)
		}
		for _, ref := range strings.Split(strings.TrimSpace(more), ", ") {
			file, id, _ := strings.Cut(ref, "#")
			page, err := os.ReadFile(filepath.Join(pages, filepath.FromSlash(file)))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if id != "" && !headings(string(page))[id] {
				t.Errorf("%s: %s has no heading #%s", name, file, id)
			}
		}
	}
	if total > 20_000 {
		t.Errorf("the topics have %d bytes, want 20,000 at most", total)
	}
}

func headings(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		id := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all[strings.ReplaceAll(id, " ", "-")] = true
	}
	return all
}

// What the program knows of exit codes, settings and stores is in the topics.
func TestTopicsAreComplete(t *testing.T) {
	need := func(topic, what string) {
		t.Helper()
		if text, _ := Text(topic); !strings.Contains(text, what) {
			t.Errorf("help %s doesn't mention %s", topic, what)
		}
	}
	for _, s := range cli.Settings() {
		need("environment", s.Env()+" ")
	}
	for _, code := range []int{cli.ExitUsage, cli.ExitConflict, cli.ExitLost, cli.ExitOwn, cli.ExitCannot, cli.ExitMissing} {
		need("exit-codes", "\n  "+strconv.Itoa(code)+" ")
	}
	cli.Use(cli.Engines{Stores: func() []cli.StoreKind {
		return []cli.StoreKind{{Name: "one", Form: "one://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]…]/ROOM[?a=b]", Doc: "a room"}, {Name: "two", Form: "two:", Doc: "here"}}
	}})
	need("stores", "\n\n  one://HOST/ROOM               a room\n  two:                          here\n\n")
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	root := &cobra.Command{Use: "leasehold", Short: "the root", Run: func(*cobra.Command, []string) {}}
	root.AddCommand(&cobra.Command{Use: "run NAME", Short: "runs", Long: "Runs a command.", Run: func(*cobra.Command, []string) {}})
	root.SetOut(&out)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "Topics, for `leasehold help TOPIC`:\n  cron, durations"},
		{[]string{"run"}, "Runs a command."},
		{[]string{"stores"}, "Stores: where leases are kept"},
	} {
		out.Reset()
		if err := help(&out, root, c.args); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: %v\n%s", c.args, err, out.String())
		}
	}
	for typed, want := range map[string][]string{"store": {"stores"}, "exitcodes": {"exit-codes"}, "tokn": {"tokens"}, "rn": {"run"}, "fence": {"fencing"}, "STORES": {"stores"}} {
		err := help(&out, root, []string{typed})
		if err == nil || !strings.Contains(err.Error(), "did you mean "+want[0]) {
			t.Errorf("%s: %v, want %v", typed, err, want)
		}
	}
	if err := help(&out, root, []string{"stores", "x"}); err == nil {
		t.Error("a topic takes no more words")
	}
	if got := Near("zzz", []string{"a", "a", "b"}); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Error(got)
	}
}
