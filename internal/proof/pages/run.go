//go:build unix

package pages

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// patience is how long a session may take. On an idle machine the longest one takes some seconds.
const patience = time.Minute

// Tally counts what was done with the blocks.
type Tally struct {
	Pages, Run, Compared, Served, Parsed atomic.Int64
	NotRun                               atomic.Int64
}

func (c *Tally) String() string {
	return fmt.Sprintf("command blocks of %d pages: %d run (%d outputs compared, %d blocks with a real server), %d not run, with their reasons; %d calls of leasehold parsed",
		c.Pages.Load(), c.Run.Load(), c.Compared.Load(), c.Served.Load(), c.NotRun.Load(), c.Parsed.Load())
}

// Page runs the blocks of a page, which is named from the checkout. The program leasehold is on the
// PATH; parse returns what is wrong with arguments of it.
func Page(t *testing.T, checkout, name string, parse func(args []string) error, tally *Tally) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	blocks, oneSession, err := Blocks(name, string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) > 0 {
		tally.Pages.Add(1)
	}
	var run []Block
	for _, b := range blocks {
		for _, args := range b.Calls() {
			if err := parse(args); err != nil {
				t.Errorf("%s: leasehold %s: %v", b, strings.Join(args, " "), err)
			}
			tally.Parsed.Add(1)
		}
		if b.NotRun != "" {
			tally.NotRun.Add(1)
			t.Logf("%s: not run: %s", b, b.NotRun)
			continue
		}
		run = append(run, b)
	}
	if oneSession && len(run) > 0 {
		t.Run("session", func(t *testing.T) { session(t, run, tally) })
		return
	}
	for _, b := range run {
		t.Run(strconv.Itoa(b.Line), func(t *testing.T) { session(t, []Block{b}, tally) })
	}
}

// prelude is what every session begins with. After a command that was put into the background,
// settle waits until it holds its name or serves.
const prelude = `set -eo pipefail
settle() {
  for _ in $(seq 600); do
    if leasehold list -a -o json 2>/dev/null | grep -q '"state": *"held"' || command curl -sf http://SERVER/healthz >/dev/null 2>&1; then return 0; fi
    sleep 0.05
  done
  echo "what was started in the background holds nothing and serves nothing" >&2
  return 1
}
curl() { command curl --fail-with-body "$@"; }
at() { printf '\n@@ %s\n' "$1"; }
`

// engines are the servers that a block may have, by name.
var engines = func() map[string]servers.Kind {
	all := map[string]servers.Kind{}
	for _, k := range servers.Kinds() {
		all[k.Name()] = k
	}
	return all
}()

// started starts the engine's server, and returns what stands for its address. It adds to env what
// the engine's own tools take, and to the folder bin those that aren't on the PATH.
func started(t *testing.T, kind servers.Kind, bin string, env map[string]string) (address string) {
	t.Helper()
	s := kind.Start(t, servers.Shared())
	for name, value := range s.Env {
		env[name] = value
	}
	page := kind.Page()
	for name, program := range page.Tools {
		if err := tool(filepath.Join(bin, name), kind.Name(), program); err != nil {
			t.Fatal(err)
		}
	}
	if page.Scheme != "" {
		return page.Scheme + s.Addr
	}
	return s.URL
}

// tool makes a program of an engine's own: a script, or a link to what scripts/engines installed.
func tool(path, engine, program string) error {
	if strings.HasPrefix(program, "#!") {
		return os.WriteFile(path, []byte(program), 0o700) //nolint:gosec // a program
	}
	file, err := servers.Program(engine, program)
	if err != nil {
		return err
	}
	return os.Symlink(file, path)
}

var serve = regexp.MustCompile(`(?m)leasehold serve\b([^\n]*)`)

// shellSession is what one shell is told.
type shellSession struct {
	t        *testing.T
	dir, bin string
	server   string            // the address of a lock server, if there is one
	served   map[string]string // engines' servers, by name: what stands for their addresses
	env      map[string]string
	script   strings.Builder
	said     []string // what the parts of the output belong to
	wants    []*step  // what they should be
}

// session runs blocks one after the other, in one shell.
func session(t *testing.T, blocks []Block, tally *Tally) {
	t.Helper()
	t.Parallel()
	s := &shellSession{t: t, dir: t.TempDir(), bin: t.TempDir(), server: servers.FreeAddr(t), served: map[string]string{}, env: map[string]string{}}
	s.script.WriteString(strings.ReplaceAll(prelude, "SERVER", s.server))
	for _, b := range blocks {
		s.add(b)
	}
	s.at("", nil)
	parts, failed := shell(t, s.dir, s.bin, s.env, s.script.String())
	for i, part := range parts {
		if i >= len(s.wants) || s.wants[i] == nil || i == len(parts)-1 && failed != nil {
			continue
		}
		if want := s.wants[i].want; !Matches(want, part, s.dir) {
			t.Errorf("%s\nprints:\n%s\nwant:\n%s", s.said[i], part, want)
		}
		tally.Compared.Add(1)
	}
	if failed != nil || len(parts) != len(s.said) {
		last := max(0, len(parts)-1)
		t.Errorf("%s: %v; it printed:\n%s", s.said[last], failed, parts[last])
	}
	tally.Run.Add(int64(len(blocks)))
	if len(s.served) > 0 {
		tally.Served.Add(int64(len(blocks)))
	}
}

// at marks in the output what follows.
func (s *shellSession) at(what string, want *step) {
	fmt.Fprintf(&s.script, "at %d\n", len(s.said))
	s.said, s.wants = append(s.said, what), append(s.wants, want)
}

// add has the shell do a block.
func (s *shellSession) add(b Block) {
	s.t.Helper()
	for _, name := range b.With {
		kind, there := engines[name]
		if !there {
			s.t.Fatalf("%s: with: %s: no such engine", b, name)
		}
		if s.served[name] == "" {
			s.served[name] = started(s.t, kind, s.bin, s.env)
		}
	}
	for _, name := range b.programs() {
		file := filepath.Join(s.dir, name)
		if _, err := os.Stat(file); err == nil || strings.Contains(b.Text, ">"+name) || strings.Contains(b.Given, ">"+name) {
			continue
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
			s.t.Fatal(err)
		}
	}
	if b.Given != "" {
		s.at(b.String()+": given", nil)
		s.script.WriteString(background(s.real(b.Given)))
	}
	if b.Stopped != "" {
		fmt.Fprintf(&s.script, "leasehold() { timeout -k 5s -s INT %s leasehold \"$@\" || [ $? = 124 ]; }\n", b.Stopped)
	}
	if !b.Console {
		s.at(b.String(), nil)
		s.script.WriteString(background(s.real(b.Text)) + "\nunset -f leasehold\n")
		return
	}
	for _, want := range b.steps() {
		s.at(b.String()+": "+want.command, &want)
		s.script.WriteString("set +e\n" + background(s.real(want.command)) + "\nset -e\n")
	}
}

// real puts real addresses in place of the pages'.
func (s *shellSession) real(text string) string {
	for name, address := range s.served {
		if stands := engines[name].Page().Address; stands != nil {
			text = stands.ReplaceAllString(text, address)
		}
	}
	text = serve.ReplaceAllStringFunc(text, func(call string) string {
		if strings.Contains(call, "--listen") {
			return call
		}
		return strings.Replace(call, "leasehold serve", "leasehold serve --listen "+s.server, 1)
	})
	text = elsewhere.ReplaceAllString(text, "$1$2$3"+s.dir+"/")
	return strings.ReplaceAll(text, "127.0.0.1:7070", s.server)
}

// elsewhere are folders that the pages write to, and the tests don't.
var elsewhere = regexp.MustCompile(`(>)/tmp/|(>)/etc/bash_completion\.d/|( )/usr/local/share/`)

var inBackground = regexp.MustCompile(`(?m)^(.*leasehold (?:run|serve|elect|gate) .*[^&]|.*leasehold serve ?)&( *#.*)?$`)

// background has the shell wait until what was started in the background works.
func background(text string) string { return inBackground.ReplaceAllString(text, "$0\nsettle") }

// shell runs a script in the folder, and returns what each part printed.
func shell(t *testing.T, dir, bin string, env map[string]string, script string) (parts []string, failed error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-c", script) //nolint:gosec // it is what the pages say
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "USER=ada", "LANG=C.UTF-8", "TERM=dumb"}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	t.Cleanup(func() { end(t, dir) })
	failed = cmd.Run()
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range regexp.MustCompile(`(?m)^\n?@@ \d+\n`).Split(string(text), -1) {
		if i > 0 {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		parts = []string{string(text)}
	}
	return parts, failed
}

// end kills what the session has left behind: whatever runs in its folder.
func end(t *testing.T, dir string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Error(err)
	}
	for _, link := range links {
		if at, err := os.Readlink(link); err != nil || at != dir {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
