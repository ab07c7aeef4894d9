package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// On a store that vouches for no age, who looks learns that a holder has died: `show --observe` in one go, the others from what was seen
// before; and of one that lives that it does, at its first sign of life.
func TestFinding_L11_WhoLooksLearnsOfADeath(t *testing.T) {
	url := "etcd://" + servers.Etcd(t).Addr
	stalltest.Run(t, func(t testing.TB) { deathIsShown(t, url) })
}

func deathIsShown(t testing.TB, url string) {
	p := newPlace(t)
	command := func(args ...string) *exec.Cmd {
		cmd := p.command(args...)
		cmd.Env = append(cmd.Env, "LEASEHOLD_STORE="+url)
		return cmd
	}
	says := func(code int, want string, args ...string) {
		t.Helper()
		cmd := command(args...)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(strings.Join(strings.Fields(string(out)), " "), want) {
			t.Errorf("%v: exit code %d, want %d and %q in\n%s", args, got, code, want, out)
		}
	}
	name := strings.Trim(strings.ReplaceAll(p.dir, "/", "-"), "-")
	holder := p.launch(command("run", "--ttl", "4s", name, "--", "sh", "-c", "echo $LEASEHOLD_TOKEN >token; echo $LEASEHOLD_SEQUENCER >seq; exec sleep 1000"))
	seq, token := p.content("seq"), p.content("token")
	began := time.Now()
	says(0, "state held", "show", name, "--observe")
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("a holder that lives was watched for %v", took)
	}
	says(0, "", "check", name, "--token", token)
	says(0, "", "verify", seq)
	holder.signal(syscall.SIGKILL)
	<-holder.ended
	says(0, "state expired", "show", name, "--observe")
	says(0, "no sign of life for", "show", name)
	says(0, `"state":"expired"`, "list", name, "-o", "jsonl")
	says(1, "expired", "check", name, "--token", token)
	says(1, "nobody holds the name", "verify", seq)
}
