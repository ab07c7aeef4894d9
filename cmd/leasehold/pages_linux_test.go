package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/proof/pages"
)

// The commands of the README and of all pages are run, and print what the pages say. Those that aren't
// run are at least calls that the program understands.
func TestPages(t *testing.T) {
	all, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(all) < 30 {
		t.Fatal(all, err)
	}
	var tally pages.Tally
	t.Run("of", func(t *testing.T) {
		for _, page := range append(all, "../../README.md") {
			name := strings.TrimPrefix(filepath.ToSlash(page), "../../")
			t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
				t.Parallel()
				pages.Page(t, "../..", name, understood, &tally)
			})
		}
	})
	fmt.Println(&tally)
	if tally.Run.Load() < 40 || tally.Compared.Load() < 40 || tally.Parsed.Load() < 150 {
		t.Error("that is less than there was")
	}
}

// understood returns what is wrong with arguments of the program.
func understood(args []string) error {
	for i, arg := range args {
		if arg == "N" { // a number that the reader puts in
			args[i] = "7"
		}
	}
	r := root(cli.New(), args)
	r.InitDefaultHelpCmd()
	r.InitDefaultCompletionCmd(args...)
	cmd, rest, err := r.Find(args)
	if err != nil {
		return err
	}
	if !cmd.HasParent() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%s is no command", rest[0])
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
