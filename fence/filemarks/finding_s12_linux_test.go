package filemarks

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/fence"
)

// marksEnv names the file in which the test binary, started again, saves marks instead of testing.
const marksEnv = "LEASEHOLD_TEST_MARKS"

func init() {
	path := os.Getenv(marksEnv)
	if path == "" {
		return
	}
	if err := saveMarks(path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

func saveMarks(path string) error {
	m, err := Open(path)
	if err != nil {
		return err
	}
	for i := range 300 { // of one resource, so that the next Open rewrites the file
		if err := m.Save(context.Background(), "n", fence.Mark{Token: fence.Token(i + 1), Holder: "a"}); err != nil {
			return err
		}
		fmt.Printf("saved %d\n", i+1)
	}
	if err := m.Close(); err != nil {
		return err
	}
	if m, err = Open(path); err != nil {
		return err
	}
	return m.Close()
}

// traced runs saveMarks under strace and returns the system calls that it made, in order, and what it printed.
func traced(t *testing.T, inject ...string) (calls []string, output string, err error) {
	t.Helper()
	tool, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
			t.Fatal("required, but missing: strace")
		}
		t.Skip("not tried here: strace is missing")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	args := append([]string{"-f", "-qq", "-y", "-s", "16", "-o", log, "-e", "trace=pwrite64,write,fsync,fdatasync,renameat"}, inject...)
	cmd := exec.Command(tool, append(args, exe)...)
	cmd.Env = append(os.Environ(), marksEnv+"="+filepath.Join(dir, "marks"))
	out, err := cmd.CombinedOutput()
	text, readErr := os.ReadFile(log)
	if readErr != nil {
		t.Fatalf("%v: %s", readErr, out)
	}
	for line := range strings.Lines(string(text)) {
		if _, call, ok := strings.Cut(line, " "); ok { // after the thread's id
			calls = append(calls, strings.TrimSpace(call))
		}
	}
	return calls, string(out), err
}

// A mark is on disk before it counts as saved, and so is a file that takes the place of another, and its name: each write to the
// file is synced before anything is said of it. The kernel's own account tells, since a crash of the machine can't be had.
func TestFinding_S12_MarksAreSyncedBeforeTheyCount(t *testing.T) {
	calls, output, err := traced(t)
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	dirty, renamed := false, true // since the last fsync of the file, and of its folder; the file is new
	said, renames := 0, 0
	for _, c := range calls {
		name, rest, _ := strings.Cut(c, "(")
		switch file := strings.Contains(rest, "/marks"); {
		case name == "pwrite64" && file, name == "write" && file:
			dirty = true
		case name == "fsync" && file, name == "fdatasync" && file:
			dirty = false
		case name == "fsync":
			renamed = false
		case name == "renameat":
			renames++
			if dirty {
				t.Errorf("a file takes the place of another before it is synced: %s", c)
			}
			renamed = true
		case name == "write" && strings.Contains(rest, `"saved `):
			said++
			if dirty || renamed {
				t.Fatalf("said to be saved before it is synced: %s", c)
			}
		}
	}
	if said != 300 || renames != 1 || dirty || renamed {
		t.Errorf("%d marks saved, %d files replaced; at the end, to be synced: a file %v, a name %v", said, renames, dirty, renamed)
	}
}

// A mark whose sync failed is not saved, and nothing is after it.
func TestFinding_S12_AMarkThatIsNotSyncedIsNotSaved(t *testing.T) {
	// Of the thread that saves; the runtime may move it to another, whose calls strace counts anew.
	_, output, err := traced(t, "-e", "inject=fsync:error=EIO:when=10+")
	if err == nil || !strings.Contains(output, "input/output error: open it again") || strings.Contains(output, "saved 300") {
		t.Errorf("%v: %s", err, output)
	}
}
