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
	} {
		if strings.Contains(trace.String(), "init "+late+" ") {
			t.Errorf("a guard initialises %s", late)
		}
	}
	t.Logf("a guard has %d KiB of its own, and initialises %d packages", own>>10, strings.Count(trace.String(), "init "))
}
