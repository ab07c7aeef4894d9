package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if code, ok := wrapped(os.Args); ok {
		os.Exit(code)
	}
	if os.Getenv("LEASEHOLD_TESTREPORT") != "" { // this program, as if it were testreport
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// However the runner is ended, the servers that its tests started end, too: here Redis, PostgreSQL with its processes, and a
// server that tests share.
func TestNothingOutlivesTheRunner(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			up := filepath.Join(t.TempDir(), "up")
			var out bytes.Buffer
			cmd := exec.Command(os.Args[0], "-count=1", "./testdata/holds")
			cmd.Env = append(os.Environ(), "LEASEHOLD_TESTREPORT=1", "LEASEHOLD_HOLDS="+up)
			cmd.Stdout, cmd.Stderr = &out, &out
			cmd.WaitDelay = time.Second
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { defer close(ended); _ = cmd.Wait() }() // its end is what is asked for
			t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
			await(t, "the servers are up", func() bool {
				select {
				case <-ended:
					if strings.Contains(out.String(), "skipped: 1 × not tried here") {
						t.Skip(out.String())
					}
					t.Fatalf("it has ended:\n%s", &out)
				default:
				}
				_, err := os.Stat(up)
				return err == nil
			})
			all := family(t, cmd.Process.Pid)
			t.Log(all)
			if len(all) < 8 { // go, the wrapper, the tests, two of Redis, PostgreSQL, which has several
				t.Fatalf("%d processes were started: %v", len(all), all)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			<-ended
			for pid, name := range all {
				await(t, fmt.Sprintf("%s (%d) is gone", name, pid), func() bool { return !runs(pid) })
			}
			if said := strings.Contains(out.String(), errInterrupted.Error()); said != (sig != syscall.SIGKILL) {
				t.Errorf("it says:\n%s", &out)
			}
		})
	}
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened: %s", what)
		}
	}
}

// family returns the processes that pid started, and those that they did, with their names.
func family(t *testing.T, pid int) map[int]string {
	t.Helper()
	parents, names := map[int]int{}, map[int]string{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		if child, name, state, parent := status(file); state != "" {
			parents[child], names[child] = parent, name
		}
	}
	all := map[int]string{}
	for child := range parents {
		for at := child; at > 1; at = parents[at] {
			if parents[at] == pid {
				all[child] = names[child]
				break
			}
		}
	}
	return all
}

// runs reports whether a process is there and not merely waiting to be reaped.
func runs(pid int) bool {
	_, _, state, _ := status(fmt.Sprintf("/proc/%d/stat", pid))
	return state != "" && state != "Z" && state != "X"
}

// status reads the stat file of a process; nothing when it is gone.
func status(file string) (pid int, name, state string, parent int) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, "", "", 0
	}
	begin, end := strings.Index(string(text), " ("), strings.LastIndex(string(text), ") ")
	if begin < 0 || end < begin {
		return 0, "", "", 0
	}
	words := strings.Fields(string(text[end+1:]))
	pid, err = strconv.Atoi(string(text[:begin]))
	if err != nil || len(words) < 2 {
		return 0, "", "", 0
	}
	if parent, err = strconv.Atoi(words[1]); err != nil {
		return 0, "", "", 0
	}
	return pid, string(text[begin+2 : end]), words[0], parent
}

// The processor time of a package has that of the programs that its tests ran.
func TestProcessorTimeIsTold(t *testing.T) {
	burn := head + `
		import ("os/exec"; "time")
		func TestA(t *testing.T) { for i := range 200_000_000 { sum ^= i }; time.Sleep(time.Second) }
		var sum int
		func TestB(t *testing.T) { if err := exec.Command("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done").Run(); err != nil { t.Fatal(err) } }`
	burn = strings.Replace(burn, "import \"testing\"\n", "", 1)
	burn = strings.Replace(burn, "import (", "import (\"testing\"; ", 1)
	for _, only := range []string{"TestA", "TestB"} {
		_, report := tallied(t, map[string]string{"a_test.go": burn}, "-run=^"+only+"$")
		found := regexp.MustCompile(`ok    m  [0-9.]+m?s \(([0-9.]+m?s) of a processor\)`).FindStringSubmatch(report)
		if found == nil {
			t.Fatalf("%s: it doesn't say so:\n%s", only, report)
		}
		if took, err := time.ParseDuration(found[1]); err != nil || took < 20*time.Millisecond || took > 900*time.Millisecond {
			t.Errorf("%s took %v of a processor: %v", only, took, err)
		}
	}
}
