package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/leaseguard"
)

// Each `leasehold run` has two guards: what they take, it takes. Initialised as the rest of the program is, one takes 20 MB.
func TestAGuardIsStartedBeforeTheRestIsInitialised(t *testing.T) {
	const most = 8 << 20 // bytes that no other process shares
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = []string{leaseguard.Name, leaseguard.Arg}
	trace := new(strings.Builder)
	cmd.Env, cmd.Stderr = []string{"GODEBUG=inittrace=1"}, trace
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for ready := time.Now().Add(patienceOfTests); ; { // it calls itself so once it can do its work
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		if err == nil && strings.TrimSpace(string(comm)) == leaseguard.Name {
			break
		}
		if time.Now().After(ready) {
			t.Fatalf("no guard yet: %q, %v", comm, err)
		}
	}
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var own int
	for line := range strings.Lines(string(rollup)) {
		var kib int
		if _, err := fmt.Sscanf(line, "Anonymous: %d kB", &kib); err == nil {
			own = kib << 10
		}
	}
	if own == 0 || own > most {
		t.Errorf("a guard has %d bytes of its own: want 1 to %d\n%s", own, most, rollup)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, late := range []string{
		"k8s.io/client-go/kubernetes/scheme", "github.com/aws/aws-sdk-go-v2/service/dynamodb", "modernc.org/libc", "net/http",
		"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas", "google.golang.org/protobuf/reflect/protodesc", "path/filepath",
		"github.com/prometheus/client_golang/prometheus", "github.com/leasehold/leasehold/store/open",
		// What these need, and what sorts between, would be a third of a guard: see package leaseguard.
		"reflect", "unicode", "golang.org/x/sys/unix",
	} {
		if strings.Contains(trace.String(), "init "+late+" ") {
			t.Errorf("a guard initialises %s", late)
		}
	}
	t.Logf("a guard has %d KiB of its own, and initialises %d packages", own>>10, strings.Count(trace.String(), "init "))
}

// A run on a file begins, and ends, before the clients of servers are initialised; what is anything else is left to main.
func TestARunOnAFileIsEarly(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	late := []string{
		"k8s.io/client-go/kubernetes/scheme", "github.com/aws/aws-sdk-go-v2/service/dynamodb", "github.com/prometheus/client_golang/prometheus",
		"google.golang.org/grpc", "github.com/leasehold/leasehold/store/open",
	}
	dir := t.TempDir()
	for _, c := range []struct {
		what  string
		early bool
		code  int
		args  []string
	}{
		{"a file", true, 0, []string{"run", "--store", "file:" + dir + "/a.db", "job", "--", "true"}},
		{"the default store", true, 3, []string{"run", "job", "--", "sh", "-c", "exit 3"}},
		{"help", false, 0, []string{"run", "--help"}},
		{"a flag that isn't one", false, 64, []string{"run", "--no-such-flag", "job", "--", "true"}},
		{"no command", false, 64, []string{"run", "job"}},
		{"another store", false, 0, []string{"run", "--store", "memory:", "job", "--", "true"}},
		{"a file that is none", false, 64, []string{"run", "--store", "file:", "job", "--", "true"}},
		{"another command", false, 0, []string{"list"}},
	} {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Args = append([]string{"leasehold"}, c.args...)
		trace := new(strings.Builder)
		cmd.Env, cmd.Stderr = []string{"GODEBUG=inittrace=1", "HOME=" + dir, "PATH=" + os.Getenv("PATH")}, trace
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != c.code {
			t.Errorf("%s: %v: want exit code %d", c.what, err, c.code)
		}
		for _, l := range late {
			if strings.Contains(trace.String(), "init "+l+" ") == c.early {
				t.Errorf("%s: %s is initialised: %v", c.what, l, !c.early)
			}
		}
		t.Logf("%s: %d packages", c.what, strings.Count(trace.String(), "init "))
	}
}
