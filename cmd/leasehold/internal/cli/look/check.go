package look

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/step"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

func (a *app) checkCommand() *cobra.Command {
	var text, file string
	fd := -1
	cmd := &cobra.Command{
		Use:   "check (NAME --token N | --hold FILE | --fd N)",
		Short: "Exit with 0 if a name is held under a token, given as a number",
		Long: "Exit with 0 if NAME is held under token N, and with 1 if it isn't: another term has begun, or the hold was released,\n" +
			"broken, or has expired. Inside `leasehold run` the token need not be given. The answer may be outdated when it arrives;\n" +
			"what must not be done twice has to refuse old tokens itself.\n\n" +
			"With --hold or --fd, ask the same of what `leasehold acquire` or `leasehold lock` has acquired. It is over also when its validity\n" +
			"is, as when what renews it was killed.",
		Example:           "  leasehold check billing --token \"$LEASEHOLD_TOKEN\" || exit",
		Args:              cli.Want("[NAME]"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" || fd >= 0 {
				if len(args) > 0 || text != "" || file != "" && fd >= 0 {
					return cli.Usage("NAME with --token, --hold and --fd exclude each other: give one")
				}
				return step.Check(cmd.Context(), a.App, file, fd)
			}
			if len(args) == 0 {
				return cli.Usage("NAME is missing: leasehold check NAME --token N, or leasehold check --hold FILE")
			}
			name := args[0]
			if err := cli.NameArg(name); err != nil {
				return err
			}
			if text == "" && os.Getenv(hold.EnvName) == name {
				text = os.Getenv(hold.EnvToken)
			}
			token, err := cli.TokenFlag(name, text)
			if err != nil {
				return err
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error {
				st = store.Confirmed(st) // a script acts on the answer
				rec, err := store.Load(cmd.Context(), st, name)
				if err != nil {
					return err
				}
				v, err := a.Look(cmd.Context(), st, rec)
				if err == nil && !v.Under(token) {
					err = a.AddShares(cmd.Context(), st, &v, rec)
				}
				if err != nil {
					return err
				}
				a.KeepBook()
				return a.check(v, token)
			})
		},
	}
	cmd.Flags().StringVar(&text, "token", "", "the token to check")
	cmd.Flags().StringVar(&file, "hold", "", "the file that `acquire` made")
	cmd.Flags().IntVar(&fd, "fd", -1, "the descriptor by which `lock` holds a name")
	a.Flag(cmd.Flags(), "output")
	return cmd
}

func (a *app) check(v view.View, token fence.Token) error {
	d := api.Verification{Name: v.Name, Token: token, Current: v.Under(token)}
	switch {
	case d.Current:
		d.Holder = v.Holder
		if h := v.ShareUnder(token); h != nil {
			d.Holder = h.Holder
		}
	case v.Token == 0:
		d.Reason = "nobody has ever held it"
	case v.Token == token:
		d.Reason = "that term is over or ending: " + string(v.State)
	default:
		d.Reason = fmt.Sprintf("the newest is %d", v.Token)
	}
	return a.Verdict(d, v, fmt.Sprintf("%s: %d is not the current token: %s", v.Name, token, d.Reason))
}
