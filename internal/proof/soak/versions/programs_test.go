//go:build linux

package versions

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// earlier lists the versions that today's shares a store with, the oldest first: a commit a line, and what it is.
//
//go:embed earlier
var earlier string

// earlierEnv has other commits in place of those.
const earlierEnv = "LEASEHOLD_VERSIONS_EARLIER"

// today is how the version of this checkout is called.
const today = "today"

// version is one version of the command.
type version struct{ name, program string }

// versions returns the earlier versions, the oldest first, and today's.
func versions(t *testing.T) []version {
	t.Helper()
	cache, err := servers.Cache()
	if err != nil {
		t.Fatal(err)
	}
	var commits []string
	for line := range strings.Lines(earlier) {
		commit, _, _ := strings.Cut(line, " ")
		commits = append(commits, commit)
	}
	if named := strings.Fields(os.Getenv(earlierEnv)); len(named) > 0 {
		commits = named
	}
	var all []version
	for _, commit := range commits {
		v := version{commit[:7], filepath.Join(filepath.Dir(cache), "versions", commit, "leasehold")}
		if _, err := os.Stat(v.program); err != nil {
			missing(t, commit)
		}
		all = append(all, v)
	}
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return append(all, version{today, program})
}

// missing ends a test that wants an earlier version that isn't built.
func missing(t *testing.T, commit string) {
	t.Helper()
	if exec.Command("git", "cat-file", "-e", commit+"^{commit}").Run() != nil {
		t.Skipf("not tried here: version %.7s is not in this clone's history, and not built", commit)
	}
	if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
		t.Fatalf("version %.7s is not built: run scripts/versions install", commit)
	}
	t.Skipf("not tried here: version %.7s is not built: scripts/versions install does that", commit)
}

// build builds the command of this checkout.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "leasehold-versions-")
	if err != nil {
		return "", err
	}
	built = dir
	program := filepath.Join(dir, "leasehold")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "github.com/leasehold/leasehold/cmd/leasehold")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the command: %w: %s", err, out)
	}
	return program, nil
})

// built is the folder that build has made.
var built string

// place is a store, and what a test keeps beside it.
type place struct {
	t        *testing.T
	dir      string
	store    string
	versions []version
}

// newPlace returns an empty store of an engine, which the oldest version has made.
func newPlace(t *testing.T, engine string) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), versions: versions(t)}
	switch engine {
	case "file":
		p.store = "file:" + filepath.Join(p.dir, "leases.db")
	case "etcd":
		p.store = "etcd://" + servers.Etcd(t).Addr
	case "postgres":
		p.store = servers.Postgres(t).URL
		p.say(p.versions[0], "init", "postgres")
	}
	return p
}

// command returns a call of a version. The jobs that it runs write to the place's folder, and last as long as lasts says.
func (p *place) command(ctx context.Context, v version, lasts string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, v.program, args...)
	cmd.Dir = p.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "LEASEHOLD_STORE=" + p.store,
		ticksEnv + "=" + p.dir, whoEnv + "=" + v.name, lastsEnv + "=" + lasts,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

// job is the command line of a job that [place.command] has run.
func job(args ...string) []string { return append(args, "--", os.Args[0]) }

// call runs a version to its end, and returns what it wrote and its exit code, which is -1 if a signal ended it.
func (p *place) call(ctx context.Context, v version, lasts string, args ...string) (stdout, stderr string, code int) {
	cmd := p.command(ctx, v, lasts, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		p.t.Errorf("%s %v: %v", v.name, args, err)
		return "", err.Error(), -1
	}
	if cmd.ProcessState == nil { // not started
		return "", "", -1
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// say is call for what has to succeed.
func (p *place) say(v version, args ...string) string {
	p.t.Helper()
	out, errs, code := p.call(p.t.Context(), v, "", args...)
	if code != 0 {
		p.t.Fatalf("%s: leasehold %s: exit code %d\n%s", v.name, strings.Join(args, " "), code, errs)
	}
	return out
}

// terms returns the terms of a name whose jobs have run here.
func (p *place) terms(name string) []term {
	p.t.Helper()
	terms, err := read(ticksFile(p.dir, name))
	if err != nil {
		p.t.Errorf("%s: %v", name, err)
	}
	return terms
}
