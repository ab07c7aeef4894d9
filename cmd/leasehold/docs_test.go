package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

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
	for _, cmd := range newApp().root(nil).Commands() {
		if cmd.Name() == "help" {
			continue
		}
		need(cmd.Name())
		cmd.Flags().VisitAll(func(f *pflag.Flag) { need("-" + f.Name) })
	}
	for _, s := range settings() {
		need(s.Env())
	}
	for _, name := range []string{envName, envToken, envHolder, envStore} {
		need("`" + name + "`")
	}
	for _, code := range []int{exitUsage, exitConflict, exitLost, exitOwn, exitCannot, exitMissing} {
		need(fmt.Sprintf("| %d |", code))
	}
}
