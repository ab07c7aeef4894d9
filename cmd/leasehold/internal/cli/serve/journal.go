package serve

import (
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/journal"
)

func journalFlags(f *pflag.FlagSet, o *Options) {
	f.StringVar(&o.journal, "journal", "", "file to keep what becomes of names in, for leasehold history --since and the page's timeline; the server looks at the whole store once a second for it (default: none)")
	cli.DurationVar(f, &o.journalKeep, "journal-keep", journal.DefaultKeep, "how long the journal keeps what has ended")
	f.IntVar(&o.journalRows, "journal-rows", journal.DefaultRows, "how many terms and states the journal keeps at most, the latest; a million take up to 200 MB")
}

// validateJournal says which flag of the journal is wrong.
func (o Options) validateJournal() error {
	switch {
	case o.journal == "" && (o.journalKeep != journal.DefaultKeep || o.journalRows != journal.DefaultRows):
		return cli.Usage("--journal-keep and --journal-rows are about a journal: add --journal FILE")
	case o.journalKeep < time.Minute:
		return cli.Usage("--journal-keep %v: want 1m or more", o.journalKeep)
	case o.journalRows < 1000:
		return cli.Usage("--journal-rows %d: want 1000 or more", o.journalRows)
	}
	return nil
}

// openJournal has the server keep a journal, if there is to be one. One that can't be kept now is
// no reason not to serve leases: the log says so, and it is tried again.
func (s *lockServer) openJournal() {
	if s.o.Demo && s.o.journal == "" {
		// Without it there is no timeline to look at.
		s.passing, _ = os.MkdirTemp("", "leasehold-demo-")
		if s.passing != "" {
			s.o.journal = filepath.Join(s.passing, "journal")
		}
	}
	if s.o.journal == "" {
		return
	}
	s.journal = journal.New(s.o.journal, journal.Options{
		Clock: s.a.Clock, Keep: s.o.journalKeep, Rows: s.o.journalRows,
		OnMoved: func(why, to string) { s.log.Warn("the journal begins again: " + why + ", and is now " + to) },
	})
	s.opts.Journal, s.opts.OnJournal = s.journal, func(err error) {
		if err != nil {
			s.log.Error(cli.OneLine(err))
			return
		}
		s.log.Info("the journal is kept again")
	}
}

func (s *lockServer) closeJournal() {
	if s.journal != nil {
		_ = s.journal.Close() // every note was committed
	}
	if s.passing != "" {
		_ = os.RemoveAll(s.passing)
	}
}
