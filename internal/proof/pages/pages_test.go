//go:build unix

package pages

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) { os.Exit(servers.Main(m).Run()) }

const page = "# A page\n\ntext <!-- aside -->\n\n```sh\n./a --x && ./b.sh  # both\n```\n\n<!-- not run: it needs a whole cluster -->\n\n```sh\nleasehold x\n```\n" +
	"\n<!-- given: touch y\ntouch z -->\n<!-- with: etcd redis -->\n```console\n$ leasehold list -a \\\n  --json\nout\nput\n\n$ true\n```\n\n```json\n{}\n```\n"

func TestBlocks(t *testing.T) {
	all, one, err := Blocks("p.md", page)
	if err != nil || one || len(all) != 3 {
		t.Fatal(all, one, err)
	}
	if all[0].Line != 6 || all[0].Console || !reflect.DeepEqual(all[0].programs(), []string{"a", "b.sh"}) {
		t.Errorf("%+v", all[0])
	}
	if all[1].NotRun != "it needs a whole cluster" {
		t.Errorf("%+v", all[1])
	}
	if b := all[2]; !b.Console || b.Given != "touch y\ntouch z\n" || !reflect.DeepEqual(b.With, []string{"etcd", "redis"}) {
		t.Errorf("%+v", b)
	}
	if want := []step{{"leasehold list -a \\\n  --json", "out\nput\n\n"}, {"true", ""}}; !reflect.DeepEqual(all[2].steps(), want) {
		t.Errorf("%q", all[2].steps())
	}
	if _, one, err := Blocks("p.md", "<!-- one session -->\n\n```sh\nls\n```\n"); err != nil || !one {
		t.Error(one, err)
	}
	for text, want := range map[string]string{
		"<!-- not run: no -->\n```sh\nls\n```\n":                    "p.md:1: not run: say why",
		"\n<!-- given: touch y -->\n\ntext\n\n```sh\nls\n```\n":     "p.md:2: no block follows the comment",
		"<!-- not run: it is only JSON -->\n\n```json\n{}\n```\n\n": "this is none",
	} {
		if _, _, err := Blocks("p.md", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestCalls(t *testing.T) {
	for text, want := range map[string][][]string{
		"leasehold run a -- ./b --c  # said":                            {{"run", "a", "--", "./b", "--c"}},
		"leasehold verify \"$X\" && ./w.sh":                             {{"verify", "$X"}},
		"( leasehold lock --fd 9 n -n || exit; ./a ) 9>/tmp/x":          {{"lock", "--fd", "9", "n", "-n"}},
		"vars=$(leasehold lock --fd 9 d -w 60 --print eval) || exit":    {{"lock", "--fd", "9", "d", "-w", "60", "--print", "eval"}},
		"leasehold watch -o jsonl | jq -r 'a | b'":                      {{"watch", "-o", "jsonl"}},
		"leasehold init systemd >/etc/x":                                {{"init", "systemd"}},
		"leasehold plan\nleasehold plan --svg \\\n  x.svg":              {{"plan"}, {"plan", "--svg", "x.svg"}},
		"leasehold run NAME [flags] -- CMD":                             nil,
		"leasehold init systemd -- --tls-cert …":                        nil,
		"LEASEHOLD_TTL=30s leasehold config show":                       {{"config", "show"}},
		"etcdctl lock a leasehold run a -- b":                           nil,
		"leasehold break b --reason 'host is drained' --in 30s; ls":     {{"break", "b", "--reason", "host is drained", "--in", "30s"}},
		"leasehold sweep --store k8s://N --dry-run   # shows; a | b":    {{"sweep", "--store", "k8s://N", "--dry-run"}},
		"leasehold id assign w -- sh -c './w; date >\"$X\"'   # a tail": {{"id", "assign", "w", "--", "sh", "-c", "./w; date >\"$X\""}},
	} {
		if got := (Block{Text: text}).Calls(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		want, got string
		matches   bool
	}{
		{"held by web1/10396/zy7qh6le42tal since 11:50:43 (1s ago)", "held by vm/7/aaaaaaaaaaaa1 since 01:02:03 (1m5.2s ago)", true},
		{"token 1795261843324", "token 1795261843325", true},
		{"since 11:50:43 (1s ago)", "since 01:02:03 (now)", true},
		{"token 1795261843324", "token 7", false},
		{"a  b", "a b", true},
		{"one\ntwo", "one", false},
		{"one", "one\ntwo", false},
		{"one\n…", "one\ntwo\nthree", true},
		{"one\n…\nthree", "one\ntwo\nthree", true},
		{"one\n…\nthree", "one\nthree", true},
		{"one\n…\nfour", "one\ntwo\nthree", false},
		{`{"name":"a",…,"x":1}`, `{"name":"a","y":[2],"x":1}`, true},
		{`{"name":"a",…,"x":1}`, "{\"name\":\"a\"\n,\"x\":1}", false},
		{"", "", true},
		{"", "something", false},
		{"exit code 75", "exit code 0", false},
		{"file:/home/ada/x.db", "file:/tmp/home/x.db", true},
	} {
		if got := Matches(c.want, c.got, "/tmp/home"); got != c.matches {
			t.Errorf("%q of %q: %v", c.want, c.got, got)
		}
	}
}

// A page whose command fails, or prints something else, fails its test.
func TestPagesThatAreWrong(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"right":        {"```console\n$ printf 'a\\nb\\n'; echo 1795261843324\na\nb\n1795261843324\n$ false\n$ echo $?\n0\n```\n", ""},
		"fails":        {"```sh\ntrue\nfalse\necho on\n```\n", "p.md:2: exit status 1"},
		"other output": {"```console\n$ echo yes\nno\n```\n", "p.md:2: echo yes"},
		"stopped":      {"<!-- given: leasehold() { :; }\nPATH=$PWD:$PATH; printf '#!/bin/sh\\nsleep 60\\n' >leasehold; chmod +x leasehold -->\n<!-- stopped: 0.1s -->\n```sh\nleasehold x\n```\n", "leasehold x: refused"},
		"a document":   {"```console\n$ cat >x <<'EOF'\na\nEOF\n$ cat x\na\n```\n", ""},
		"no such flag": {"<!-- not run: only looked at -->\n```sh\nleasehold run --bogus\n```\n", "leasehold run --bogus: refused"},
		"a pipe":       {"```sh\nfalse | cat\n```\n", "exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("PAGES_ATTACK") == name {
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "p.md"), []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
				var tally Tally
				Page(t, dir, "p.md", func([]string) error { return errors.New("refused") }, &tally)
				return
			}
			cmd := exec.Command(os.Args[0], "-test.run", "^TestPagesThatAreWrong$/^"+strings.ReplaceAll(name, " ", "_")+"$") //nolint:gosec // itself
			cmd.Env = append(os.Environ(), "PAGES_ATTACK="+name)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (c.want == "") || !strings.Contains(string(out), c.want) {
				t.Errorf("%v, want %q:\n%s", err, c.want, out)
			}
		})
	}
}
