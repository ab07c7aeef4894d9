package step

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/holdfile"
)

// seconds is a duration as flock(1) takes it, a number of seconds, or as the other commands do.
type seconds time.Duration

// String implements pflag.Value.
func (s *seconds) String() string { return time.Duration(*s).String() }

// Type implements pflag.Value.
func (s *seconds) Type() string { return "seconds" }

// Set implements pflag.Value.
func (s *seconds) Set(text string) error {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < 1e9 {
		*s = seconds(n * float64(time.Second))
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("want seconds, as flock has them, or a duration such as 20s or 1m30s")
	}
	*s = seconds(d)
	return nil
}

// nameAlone is for commands that take NAME, and run nothing as `run` does.
func nameAlone(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.Usage("%q: %s runs no command: write leasehold run %s -- %s", args[1], cmd.Name(), args[0], strings.Join(args[1:], " "))
	}
	return cli.Want("NAME")(cmd, args)
}

func (a *app) lockCommand() *cobra.Command {
	var o options
	var wait seconds
	var shared, exclusive bool
	fd := -1
	cmd := &cobra.Command{
		Use:   "lock NAME --fd N",
		Short: "Hold a name until a shell closes a descriptor, as flock does",
		Long: "Acquire NAME, and hold it until descriptor N, a file that is open for writing, is closed by the last process that has it open: the\n" +
			"shell and what it has started, however they end. Or until `leasehold unlock --fd N`. The file only carries the hold: what excludes\n" +
			"others, also on other machines, is NAME. Linux only.\n\n" +
			"A process in the background renews the hold. If it is killed, NAME is free after its TTL, and the shell isn't stopped, so ask\n" +
			"`leasehold check --fd N` before a step that must not be done twice, or have what is guarded check the token (--print). With\n" +
			"--on-lost term, a hold that is lost sends SIGTERM to the shell and to what it has started; a keeper that is killed sends nothing.\n\n" +
			"Exit codes: 75 if NAME was not acquired (see -E), 128+N after signal N, 125 for other errors, 64 for a wrong command line.",
		Example: "  ( leasehold lock --fd 9 nightly -n || exit; ./backup.sh ) 9>/tmp/nightly\n" +
			"  exec 9>/tmp/deploy; vars=$(leasehold lock --fd 9 deploy -w 60 --print eval) || exit; eval \"$vars\"; …; exec 9>&-",
		Args:              nameAlone,
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.limited, o.wait = cmd.Flags().Changed("wait"), time.Duration(wait)
			switch {
			case shared:
				return cli.Usage("--shared: a descriptor holds a name alone: for readers beside each other use `leasehold run --shared`")
			case fd < 0 && cmd.Flags().Changed("fd"):
				return cli.Usage("--fd %d: want the number of a descriptor that the shell has open, from 3 on, as in: ( leasehold lock --fd 9 %s || exit; … ) 9>/tmp/x", fd, args[0])
			case fd < 0:
				return cli.Usage("--fd is missing: the number of a descriptor that the shell has open, as in: ( leasehold lock --fd 9 %s || exit; … ) 9>/tmp/x", args[0])
			case o.onLost == lostTerm && o.parent == 0 && isPipe(a.Out):
				return cli.Usage("--parent is missing: in $(…) the process that started this one may end at once: say --parent $$")
			}
			var err error
			if o.locked, o.file, err = lockDescriptor(fd); err != nil {
				return err
			}
			if err := a.take(cmd.Context(), args[0], o); err != nil {
				o.locked.unlock()
				return err
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&fd, "fd", -1, "the descriptor")
	f.BoolVarP(&o.noWait, "no-wait", "n", false, "don't wait for NAME (also --nonblock)")
	f.BoolVar(&o.noWait, "nonblock", false, "flock's name for --no-wait")
	f.VarP(&wait, "wait", "w", "how long to wait for NAME at most, in seconds (also --timeout; default: until it is free)")
	f.BoolVarP(&exclusive, "exclusive", "x", false, "hold NAME alone, which is the default")
	f.BoolVarP(&shared, "shared", "s", false, "refused: see leasehold run --shared")
	f.StringArrayVar(&o.info, "info", nil, "KEY=VALUE for people to see; may be repeated")
	f.IntVar(&o.parent, "parent", 0, "the process that --on-lost is about (default: the one that started this one)")
	f.StringVar(&o.onLost, "on-lost", lostNone, "term sends SIGTERM to the parent and what it has started when the hold is lost; none does nothing")
	f.StringVar(&o.print, "print", "", "write to standard output: eval, env or token")
	for _, hidden := range []string{"nonblock", "shared"} {
		_ = f.MarkHidden(hidden)
	}
	for _, name := range []string{"ttl", "conflict-exit-code", "as", "keys", "output"} {
		a.Flag(f, name)
	}
	return cmd
}

func (a *app) unlockCommand() *cobra.Command {
	fd := -1
	cmd := &cobra.Command{
		Use:   "unlock --fd N",
		Short: "Release what lock holds by a descriptor",
		Long: "Release the name that `leasehold lock --fd N` holds by this descriptor. The descriptor stays open. To close it does the same.\n\n" +
			"Exit codes: 0 also if nothing is held by it; 79 if the hold was lost before.",
		Example: "  leasehold unlock --fd 9",
		Args:    cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, file, h, err := openDescriptor(fd)
			if errors.Is(err, errNotLocked) {
				a.Say("nothing is held by descriptor %d", fd)
				return nil
			}
			if err != nil {
				return err
			}
			err = a.end(cmd.Context(), fmt.Sprintf("descriptor %d", fd), file, h)
			d.unlock()
			return err
		},
	}
	cmd.Flags().IntVar(&fd, "fd", -1, "the descriptor")
	return cmd
}

// errNotLocked is matched by the error of a descriptor that holds nothing.
var errNotLocked = errors.New("nothing is held by the descriptor")

// openHold returns the file of a hold that is named by path, or by a descriptor.
func openHold(path string, fd int) (string, *holdfile.File, holdfile.Hold, error) {
	if fd < 0 {
		file, h, err := holdfile.Open(path)
		return path, file, h, err
	}
	_, file, h, err := openDescriptor(fd)
	return fmt.Sprintf("descriptor %d", fd), file, h, err
}
