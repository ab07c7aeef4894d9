package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Processes that want one name as different kinds at one instant never hold it at the same time, and one of them has it.
func TestFinding_S1_KindsExcludeEachOtherByProcesses(t *testing.T) {
	p := newPlace(t)
	kinds := [][]string{
		{"run", "--no-wait"}, {"run", "--no-wait", "--shared"}, {"run", "--no-wait", "--slots", "2"}, {"elect", "--on-exit", "exit"},
	}
	const hold = `mkdir "$LEASEHOLD_NAME" || echo "$LEASEHOLD_NAME" >>overlaps; echo "$LEASEHOLD_NAME" >>held; sleep 0.2; rmdir "$LEASEHOLD_NAME"`
	held := func() string {
		b, err := os.ReadFile(p.path("held"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(b)
	}
	rounds := 0
	for i, one := range kinds {
		for _, other := range kinds[i+1:] {
			for range 2 {
				rounds++
				name := fmt.Sprint("name", rounds)
				begin := func(kind []string) *program {
					args := append(append([]string{kind[0], name}, kind[1:]...), shortTTL...)
					return p.start(append(args, "--", "sh", "-c", hold)...)
				}
				first, second := begin(one), begin(other)
				if second.cmd.Args[1] == "elect" {
					eventually(t, name+" is held", func() bool { return strings.Contains(held(), name+"\n") })
					first.code()
					_ = second.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
				}
				first.code()
				second.code()
			}
		}
	}
	if _, err := os.Stat(p.path("overlaps")); !os.IsNotExist(err) {
		t.Errorf("held as two kinds at once: %s", p.read("overlaps"))
	}
	for n := range rounds {
		if name := fmt.Sprint("name", n+1); !strings.Contains(held(), name+"\n") {
			t.Errorf("nobody had %s", name)
		}
	}
}
