package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/id"
)

// Help takes what is quoted in a flag's description for the name of its value: a command there reads as what has to be typed.
func TestFlagsTakeOneWord(t *testing.T) {
	var see func(*cobra.Command)
	see = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); strings.Contains(value, " ") || f.Value.Type() == "bool" && value != "" {
				t.Errorf("%s --help says --%s %s", cmd.CommandPath(), f.Name, value)
			}
		})
		for _, sub := range cmd.Commands() {
			see(sub)
		}
	}
	see(root(cli.New(), nil))
}

// The manual tells of every command, flag, setting and exit code.
func TestManualIsComplete(t *testing.T) {
	b, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	need := func(what string) {
		t.Helper()
		if !strings.Contains(text, what) {
			t.Errorf("docs/command.md doesn't mention %s", what)
		}
	}
	var tells func(*cobra.Command)
	tells = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.Name() == "help" {
				continue
			}
			need(sub.Name())
			sub.Flags().VisitAll(func(f *pflag.Flag) { need("-" + f.Name) })
			tells(sub)
		}
	}
	tells(root(cli.New(), nil))
	for _, s := range cli.Settings() {
		need(s.Env())
	}
	for _, name := range []string{hold.EnvName, hold.EnvToken, hold.EnvHolder, hold.EnvStore, id.EnvID, id.EnvFloor, id.EnvCeiling} {
		need("`" + name + "`")
	}
	for _, code := range []int{cli.ExitUsage, cli.ExitConflict, cli.ExitLost, cli.ExitOwn, cli.ExitCannot, cli.ExitMissing} {
		need(fmt.Sprintf("| %d |", code))
	}
}
