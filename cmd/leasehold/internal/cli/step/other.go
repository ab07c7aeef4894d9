//go:build !linux

package step

import (
	"errors"
	"os"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/holdfile"
)

var errLinux = cli.Exit(cli.ExitUsage, errors.New("a hold is renewed in the background on Linux only: use leasehold run, or acquire --ttl and renew"))

type companion struct{}

func newCompanion(options) (*companion, error) { return nil, errLinux }

func (*companion) close() {}
func (*companion) stop()  {}

func (*companion) start(*holdfile.File, options, string, time.Duration) error { return errLinux }

// KeeperMain is the life of a keeper, which there is none of here.
func KeeperMain() { os.Exit(cli.ExitUsage) }

type descriptor struct{}

func (*descriptor) unlock() {}

func lockDescriptor(int) (*descriptor, string, error) { return nil, "", errLinux }

func openDescriptor(int) (*descriptor, *holdfile.File, holdfile.Hold, error) {
	return nil, nil, holdfile.Hold{}, errLinux
}
