package drill

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// The environment of the operator's commands.
const (
	EnvPod    = "LEASEHOLD_DRILL_POD"    // the side that the command is about
	EnvRegion = "LEASEHOLD_DRILL_REGION" // its Region, if it has one
	EnvStep   = "LEASEHOLD_DRILL_STEP"   // the step of the drill, or probe
)

// killAfter is how long a command has to end after SIGTERM.
const killAfter = 5 * time.Second

// runShell runs a command of the operator, in a process group of its own: the interrupt of a
// terminal must not end one that takes a fault back. say, if set, gets its output.
func runShell(ctx context.Context, text, step string, side Side, say func(string)) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", text)
	cmd.Env = append(os.Environ(), EnvPod+"="+side.Pod, EnvRegion+"="+side.Region, EnvStep+"="+step)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return terminateGroup(cmd.Process) }
	cmd.WaitDelay = killAfter
	err := cmd.Run()
	text = strings.TrimSpace(out.String())
	if say != nil && text != "" {
		say(text)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the command has not ended in time: %w", context.Cause(ctx))
	case text != "":
		return fmt.Errorf("%w: %s", err, lastLine(text))
	}
	return err
}

func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

// ShellFault is a fault that the operator's commands make and undo; undo may be "".
func ShellFault(do, undo string, say func(string)) Fault {
	f := Fault{How: do, Back: undo}
	f.Do = func(ctx context.Context, step string, side Side) error { return runShell(ctx, do, step, side, say) }
	f.Undo = func(ctx context.Context, step string, side Side) error {
		if undo == "" {
			return nil
		}
		return runShell(ctx, undo, step, side, say)
	}
	return f
}
