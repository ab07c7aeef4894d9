package step

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// What --print writes.
const (
	printEval  = "eval"  // commands of a POSIX shell
	printEnv   = "env"   // NAME=value, a line each
	printToken = "token" // the token alone
)

func checkPrint(what string) error {
	switch what {
	case "", printEval, printEnv, printToken:
		return nil
	}
	return cli.Usage("--print %q: want %s, %s or %s", what, printEval, printEnv, printToken)
}

// EnvHold is the variable with the path of the hold's file.
const EnvHold = "LEASEHOLD_HOLD"

// tell says what was acquired, and prints it as it is asked for.
func (t *taking) tell(ctx context.Context, l *lease.Lease, keys *fence.Keys) error {
	t.About(l.Sequencer())
	t.words.Say("%s is held under token %d", t.name, l.Token())
	if !t.o.keep && t.o.locked == nil {
		t.words.Say("renew it within %v: leasehold renew --hold %s", l.Left().Truncate(time.Second), t.o.file)
	}
	if t.Output() != output.Table {
		rec, err := store.Load(ctx, t.st, t.name)
		if err != nil {
			return err
		}
		v, err := t.Look(ctx, t.st, rec)
		if err != nil {
			return err
		}
		return output.WriteJSON(t.Out, v, t.Output() == output.Lines)
	}
	sequencer, err := cli.SequencerText(keys, l.Sequencer())
	if err != nil {
		return err
	}
	vars := [][2]string{
		{hold.EnvName, t.name}, {hold.EnvToken, l.Token().String()}, {hold.EnvHolder, l.Holder()}, {fence.EnvVar, sequencer},
	}
	if t.o.locked == nil {
		vars = append(vars, [2]string{EnvHold, t.o.file})
	}
	switch t.o.print {
	case printToken:
		_, err = fmt.Fprintln(t.Out, l.Token())
	case printEval:
		for _, v := range vars {
			if _, err = fmt.Fprintf(t.Out, "export %s=%s\n", v[0], quoted(v[1])); err != nil {
				return err
			}
		}
	case printEnv:
		for _, v := range vars {
			if _, err = fmt.Fprintf(t.Out, "%s=%s\n", v[0], v[1]); err != nil {
				return err
			}
		}
	}
	return err
}

// quoted is a word of a POSIX shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
