package rdlm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPythonClient runs RDLM's own client for Python.
func TestPythonClient(t *testing.T) {
	cache := os.Getenv("LEASEHOLD_CACHE")
	if cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(dir, "leasehold")
	}
	users := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(users, []byte("op:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	admin, err := ParseAdmin(users)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, Options{Admin: admin})
	script(t, s, filepath.Join(cache, "rdlm-py", "bin", "python"), "scripts/rdlm-client", "testdata/client.py", "op", "secret")
}

// TestCookbook makes the calls of the Chef cookbook's library, in Ruby.
func TestCookbook(t *testing.T) {
	script(t, newSite(t, Options{}), "ruby", "the package ruby", "testdata/cookbook.rb")
}

// script runs a client against s; it has to end well.
func script(t *testing.T, s *site, program, from, file string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
			t.Fatalf("%s is missing: install %s", program, from)
		}
		t.Skipf("skipped: %s is missing: install %s", program, from)
	}
	_, port, _ := strings.Cut(s.Listener.Addr().String(), ":")
	out, err := exec.CommandContext(t.Context(), path, append([]string{file, port}, args...)...).CombinedOutput()
	if err != nil || string(out) != "ok\n" {
		t.Errorf("%s: %v\n%s", file, err, out)
	}
}
