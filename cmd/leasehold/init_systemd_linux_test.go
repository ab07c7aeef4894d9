package main

import (
	"os"
	"os/exec"
	"testing"
)

// systemd itself finds nothing wrong with the unit.
func TestInitSystemdIsAUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
			t.Fatal("systemd-analyze is missing: install the package systemd")
		}
		t.Skip("skipped: systemd-analyze is missing: install the package systemd")
	}
	p := newPlace(t)
	program, err := exec.LookPath("leasehold")
	if err != nil {
		t.Fatal(err)
	}
	verify := func(unit []byte) ([]byte, error) {
		if err := os.WriteFile(p.path("leasehold.service"), unit, 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.Command("systemd-analyze", "verify", p.path("leasehold.service")).CombinedOutput()
	}
	for _, args := range [][]string{nil, {"--", "--listen", ":443", "--allow-anybody", "--audit", "/var/log/leasehold/audit 100%.jsonl"}} {
		cmd := p.command(append([]string{"init", "systemd", "--exec", program}, args...)...)
		cmd.Env = append(cmd.Env, "LEASEHOLD_STORE=") // the unit's own
		unit, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if out, err := verify(unit); err != nil || len(out) > 0 {
			t.Errorf("%v: %s\n%s", err, out, unit)
		}
	}
	if out, err := verify([]byte("[Service]\nExecStart=serve\n")); err == nil && len(out) == 0 {
		t.Error("it finds nothing wrong with anything")
	}
}
