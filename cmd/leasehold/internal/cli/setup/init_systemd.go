package setup

import (
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/serve"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/store/open"
)

// unitText is the unit, with what depends on the command line in braces.
//
//go:embed leasehold.service
var unitText string

// stateDir is where a unit keeps its files, and the store that it has if none is set.
const (
	stateDir  = "/var/lib/leasehold"
	unitStore = "file:" + stateDir + "/leases.db"
)

func (a *app) initSystemdCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "systemd [flags] [-- FLAG...]",
		Short: "Print a systemd unit for the server",
		Long: "Write a unit that runs `leasehold serve` with these flags, as a user of its own that may write to its own folders and to nothing\n" +
			"else. systemd is told when it is ready and that it lives, and restarts it when it fails. It does nothing else.\n\n" +
			"Without --store leases are kept in " + stateDir + "/leases.db, where only the server reaches them: other programs on the\n" +
			"machine use --store http://127.0.0.1:7070. A store whose URL has a password belongs into /etc/leasehold/env, which only\n" +
			"root has to be able to read: LEASEHOLD_STORE=URL.",
		Example: "  leasehold init systemd >/etc/systemd/system/leasehold.service\n" +
			"  leasehold init systemd --store etcd://10.0.0.5 -- --listen :7070 --policy /etc/leasehold/policy.yaml --tls-cert … --tls-key …\n" +
			"  systemctl daemon-reload && systemctl enable --now leasehold",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return cli.Usage("%q is one argument too many: flags of the server come after a double dash", args[0])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.printUnit(path, args) },
	}
	cmd.Flags().StringVar(&path, "exec", "", "path of the program (default: this one's)")
	return cmd
}

func (a *app) printUnit(path string, args []string) (err error) {
	if path == "" {
		if path, err = os.Executable(); err != nil {
			return fmt.Errorf("%w: name this program with --exec PATH", err)
		}
	}
	if !filepath.IsAbs(path) {
		return cli.Usage("--exec %s: want a path that begins with a slash", path)
	}
	o, err := unitFlags(args)
	if err != nil {
		return err
	}
	env, err := a.unitStore()
	if err != nil {
		return err
	}
	words := []string{unitWord(path), "serve"}
	for _, arg := range args {
		words = append(words, unitWord(arg))
	}
	capabilities := ""
	if lowPort(o) {
		capabilities = "CAP_NET_BIND_SERVICE"
	}
	text := strings.NewReplacer(
		"{exec}", strings.Join(words, " "), "{store}", unitWord("LEASEHOLD_STORE="+env), "{capabilities}", capabilities,
		"{stop}", strconv.Itoa(int((o.Drain + o.DrainDelay + stopMargin).Seconds())),
	).Replace(unitText)
	if hidden(path) {
		a.Say("the unit can't run %s, since ProtectHome and PrivateTmp hide that folder from it: install the program, and name it: sudo install %s /usr/local/bin/ && leasehold init systemd --exec /usr/local/bin/leasehold", path, path)
	}
	_, err = fmt.Fprint(a.Out, text)
	return err
}

// hidden reports whether the unit's ProtectHome or PrivateTmp hides a path from what it starts.
func hidden(path string) bool {
	return slices.ContainsFunc([]string{"/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"}, func(folder string) bool {
		return strings.HasPrefix(path, folder)
	})
}

// stopMargin is what a server needs to end when nothing is under way any more.
const stopMargin = 10 * serve.Soon

// unitFlags reads the flags of the server as that would.
func unitFlags(args []string) (o serve.Options, err error) {
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	serve.Flags(f, &o)
	f.String("keys", "", "")
	f.String("log-format", "", "")
	f.String("log-level", "", "")
	if err := f.Parse(args); err != nil {
		return o, cli.Usage("%w: `leasehold serve --help` lists the flags; --store comes before the double dash", err)
	}
	switch {
	case f.NArg() > 0:
		return o, cli.Usage("%q is one argument too many: leasehold serve has flags only", f.Arg(0))
	case o.Check || o.Demo:
		return o, cli.Usage("--healthcheck and --demo are for people, not for a unit")
	}
	for _, file := range []struct{ flag, path string }{
		{"policy", o.Policy}, {"tls-cert", o.Cert}, {"tls-key", o.Key}, {"client-ca", o.ClientCA}, {"audit", o.Audit}, {"keys", f.Lookup("keys").Value.String()},
	} {
		if file.path != "" && file.path != "-" && !filepath.IsAbs(file.path) && !strings.HasPrefix(file.path, "${") {
			return o, cli.Usage("--%s %s: want a path that begins with a slash: a unit has no folder of its own", file.flag, file.path)
		}
	}
	return o, o.Validate()
}

// unitStore is the URL of the store in a unit.
func (a *app) unitStore() (string, error) {
	v := a.Values.Find("store")
	if v.Source.Kind == config.Default {
		return unitStore, nil
	}
	if path, ok := strings.CutPrefix(v.Text, "file:"); ok && !strings.HasPrefix(filepath.Clean(path), stateDir+"/") {
		return "", cli.Usage("--store %s: the unit's user can write to %s only: want file:%s/NAME.db, or no --store", v.Text, stateDir, stateDir)
	}
	if open.Redact(v.Text) != v.Text {
		return "", cli.Usage("--store %s: it has a secret in it, and everybody can read a unit: leave --store out, and write LEASEHOLD_STORE=URL into /etc/leasehold/env, with mode 0600",
			open.Redact(v.Text))
	}
	return v.Text, nil
}

// lowPort reports whether the server listens on a port that only root may.
func lowPort(o serve.Options) bool {
	const firstFree = 1024
	for _, addr := range []string{o.Listen, o.Admin} {
		if _, port, err := net.SplitHostPort(addr); err == nil {
			if n, err := strconv.Atoi(port); err == nil && n > 0 && n < firstFree {
				return true
			}
		}
	}
	return false
}

// unitWord writes a word so that systemd reads it as it is: % begins a specifier, and words end at
// spaces. Only ${CREDENTIALS_DIRECTORY} and the like are left for it to replace.
func unitWord(word string) string {
	word = strings.ReplaceAll(strings.ReplaceAll(word, "$", "$$"), "$${", "${")
	word = strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(word)
	if word == "" || strings.ContainsAny(word, " \t'\";") {
		return `"` + word + `"`
	}
	return word
}
