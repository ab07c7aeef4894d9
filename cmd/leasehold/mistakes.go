package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

// elsewhere are commands of other programs, and what does the same here.
var elsewhere = map[string]string{
	"get": "show NAME", "describe": "show NAME", "status": "list, or leasehold show NAME", "ls": "list", "ps": "list", "locks": "list", "members": "candidates NAME",
	"delete": "release NAME --token N, or to end a live hold: leasehold break NAME --token N", "del": "release NAME --token N", "rm": "release NAME --token N",
	"kill": "break NAME --token N", "exec": "run NAME -- CMD", "start": "run NAME -- CMD", "server": "serve", "agent": "serve", "leader": "observe NAME",
	"logs": "watch NAME", "tail": "watch NAME", "set": "run NAME -- CMD", "put": "run NAME -- CMD", "cron": "run --tick '0 3 * * *' NAME -- CMD",
}

// unknownCommand explains a first argument that is no command.
func unknownCommand(root *cobra.Command, args []string) error {
	dash := slices.Contains(args, "--") || root.ArgsLenAtDash() >= 0
	if dash {
		if near := nearest(args[0], commandNames(root), 1); near != "" {
			return cli.Usage("%q is no command: did you mean %s? To run something under the lease %s, write: leasehold run %s -- CMD", args[0], near, args[0], args[0])
		}
	}
	if instead := elsewhere[args[0]]; instead != "" {
		return cli.Usage("%q is no command: write leasehold %s", args[0], instead)
	}
	if dash {
		return cli.Usage("%q is no command: to run something under the lease %s, write: leasehold run %s -- CMD", args[0], args[0], args[0])
	}
	root.SuggestionsMinimumDistance = 2
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		slices.SortStableFunc(near, func(a, b string) int { return cli.Distance(args[0], a) - cli.Distance(args[0], b) })
		return cli.Usage("%q is no command: did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return cli.Usage("%q is no command: `leasehold help` lists them", args[0])
}

func commandNames(root *cobra.Command) (names []string) {
	for _, cmd := range root.Commands() {
		names = append(names, cmd.Name())
	}
	return names
}

// flagsElsewhere are flags of other programs, and what does the same here.
var flagsElsewhere = map[string]string{
	"verbose": "--log-level debug", "v": "--log-level debug", "V": "--version", "debug": "--log-level debug", "timeout": "-w DURATION, for how long to wait for NAME",
	"config": "LEASEHOLD_CONFIG=FILE before the command", "endpoints": "--store etcd://HOST:PORT", "http-addr": "--store consul://HOST:PORT",
	"db": "--store file:PATH", "url": "--store URL", "addr": "--listen HOST:PORT", "port": "--listen :PORT", "p": "--listen :PORT", "bind": "--listen HOST:PORT",
	"nonblock": "-n", "conflict-exit": "--conflict-exit-code CODE", "json": "-o json", "format": "-o json", "name": "NAME as the first argument", "lease": "--ttl DURATION", "interval": "--once-per DURATION",
	"timezone": "--tz ZONE", "schedule": "--tick EXPRESSION", "force": "--yes", "note": "--reason TEXT", "message": "--reason TEXT",
}

// flagError explains a flag that isn't one, or whose value is wrong. args are those of the program.
func flagError(cmd *cobra.Command, args []string, err error) error {
	if !cmd.HasParent() && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return unknownCommand(cmd, args)
	}
	lists := fmt.Sprintf("`%s --help` lists the flags", cmd.CommandPath())
	if bad := new(pflag.InvalidValueError); errors.As(err, &bad) {
		return badValue(bad, lists)
	}
	if lacks := new(pflag.ValueRequiredError); errors.As(err, &lacks) {
		return cli.Usage("--%s has no value: write --%s %s", lacks.GetFlag().Name, lacks.GetFlag().Name, strings.ToUpper(lacks.GetFlag().Value.Type()))
	}
	unknown := new(pflag.NotExistError)
	if !errors.As(err, &unknown) {
		return cli.Usage("%w: %s", err, lists)
	}
	if name := cmd.Name(); (name == "run" || name == "with-lock" || name == "assign") && !slices.Contains(args, "--") {
		what := "NAME"
		if name == "assign" {
			what = "POOL"
		}
		return cli.Usage("%w: flags of CMD come after a double dash: %s %s -- CMD --flag", err, cmd.CommandPath(), what)
	}
	given := unknown.GetSpecifiedName()
	// One dash, as Go's own flags have it.
	if long, _, _ := strings.Cut(unknown.GetSpecifiedShortnames(), "="); len(long) > 3 {
		given = long
	}
	if err := misplaced(cmd, given, err, lists); err != nil {
		return err
	}
	if instead := flagsElsewhere[given]; instead != "" && offers(cmd, instead) {
		return cli.Usage("%w: write %s; %s", err, instead, lists)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest(given, names, 2); near != "" && unknown.GetSpecifiedShortnames() == "" {
		return cli.Usage("%w: did you mean --%s? %s", err, near, lists)
	}
	return cli.Usage("%w: %s", err, lists)
}

// misplaced explains a flag that is known elsewhere, or written with two dashes; nil for others.
func misplaced(cmd *cobra.Command, given string, err error, lists string) error {
	switch {
	case cmd.Name() == "systemd":
		return cli.Usage("%w: flags of the server come after a double dash: %s -- --%s …", err, cmd.CommandPath(), given)
	case cmd.Flags().Lookup(given) != nil:
		return cli.Usage("%w: a long flag has two dashes: write --%s; %s", err, given, lists)
	case given == "c" && cmd.Name() == "lock":
		return cli.Usage("%w: lock runs no command: write leasehold run NAME -- sh -c '…'; %s", err, lists)
	}
	return nil
}

// swallowed explains a flag that took the double dash for its value. It has to be asked before the
// arguments are judged, since nothing is left that tells NAME from CMD.
func swallowed(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "--" && err == nil {
			err = cli.Usage("--%s has no value, and took the double dash for it: write --%s %s -- CMD", f.Name, f.Name, strings.ToUpper(f.Value.Type()))
		}
	})
	return err
}

// judged has the arguments of a command judged by its own rule, once its flags make sense.
func judged(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		judged(below)
	}
	if own := cmd.Args; own != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return cmp.Or(swallowed(cmd), own(cmd, args)) }
	}
}

// badValue explains a value that its flag doesn't take.
func badValue(bad *pflag.InvalidValueError, lists string) error {
	flag, value, kind := bad.GetFlag().Name, bad.GetValue(), bad.GetFlag().Value.Type()
	if value == "--" {
		return cli.Usage("--%s has no value, and took the double dash for it: write --%s %s -- CMD", flag, flag, strings.ToUpper(kind))
	}
	wants := map[string]string{"bool": "true or false", "int": "a whole number", "uint": "a whole number, 0 or more", "float": "a number"}
	if want := wants[strings.TrimRight(kind, "0123456789")]; want != "" {
		return cli.Usage("--%s %q: want %s; %s", flag, value, want, lists)
	}
	return cli.Usage("%w: %s", bad, lists)
}

// offers reports whether a command has the flag with which a text begins, if it begins with one.
func offers(cmd *cobra.Command, text string) bool {
	flag, _, _ := strings.Cut(text, " ")
	long, isLong := strings.CutPrefix(flag, "--")
	short, isShort := strings.CutPrefix(flag, "-")
	switch {
	case isLong:
		return cmd.Flags().Lookup(long) != nil
	case isShort:
		return cmd.Flags().ShorthandLookup(strings.TrimRight(short, ",")) != nil
	}
	return true
}

// nearest returns the name that a text was meant to be, as far as can be told: one that differs in
// up to most letters, or else begins with it; "" for none.
func nearest(text string, names []string, most int) string {
	best, least := "", most+1
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
	for _, name := range names {
		if d := cli.Distance(plain(text), name); d < least && 2*d < len(name) {
			best, least = name, d
		}
	}
	for _, name := range names {
		if best == "" && len(text) > 3 && strings.HasPrefix(name, plain(text)) {
			best = name
		}
	}
	return best
}
