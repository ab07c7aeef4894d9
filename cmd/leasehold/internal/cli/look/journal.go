package look

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/durations"
	"github.com/leasehold/leasehold/internal/incident"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// times are the flags of history that ask for a time, and not for one name's terms.
type times struct {
	since, until   string
	prefix, holder string
	report         bool
}

func (t *times) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.since, "since", "", "what lasted in that time, from the server's journal: a duration such as 1h, or a time such as 2026-11-21T18:00:00Z")
	f.StringVar(&t.until, "until", "", "with --since: the end of that time, how long ago or when (default: now)")
	f.StringVar(&t.prefix, "prefix", "", "with --since: of names that begin so, not of one NAME")
	f.StringVar(&t.holder, "holder", "", "with --since: of that holder")
	f.BoolVar(&t.report, "report", false, "with --since: as a report in Markdown, with terms that were lost and times without a holder, the worst first")
}

// args are those that history takes.
func (t *times) args(cmd *cobra.Command, args []string) error {
	if t.since == "" {
		return cli.Want("NAME")(cmd, args)
	}
	return cli.Want("[NAME]")(cmd, args)
}

// query returns what is asked for.
func (t *times) query(args []string, now time.Time) (q client.JournalQuery, err error) {
	if t.since == "" {
		if t.until != "" || t.prefix != "" || t.holder != "" || t.report {
			return q, cli.Usage("--until, --prefix, --holder and --report need --since: how far back to look")
		}
		return q, nil
	}
	q.Prefix, q.Holder, q.Until = t.prefix, t.holder, now
	if len(args) > 0 {
		if err := cli.NameArg(args[0]); err != nil {
			return q, err
		}
		if q.Name = args[0]; q.Prefix != "" {
			return q, cli.Usage("NAME and --prefix: want one of them")
		}
	}
	if err := driver.CheckPrefix(q.Prefix); err != nil {
		return q, cli.BadName("--prefix", err)
	}
	if q.Since, err = when("since", t.since, now); err == nil && t.until != "" {
		q.Until, err = when("until", t.until, now)
	}
	if err == nil && !q.Since.Before(q.Until) {
		err = cli.Usage("--since %s --until %s: want an end after the beginning", t.since, t.until)
	}
	return q, err
}

func when(flag, text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	d, err := durations.Parse(text)
	if err != nil || d < 0 {
		return now, cli.Usage("--%s %s: want how long ago, such as 1h, or a time such as 2026-11-21T18:00:00Z", flag, text)
	}
	return now.Add(-d), nil
}

// journaled is a store of a server that may keep a journal.
type journaled interface {
	Journal(ctx context.Context, q client.JournalQuery) iter.Seq2[client.Span, error]
}

// onlyRecords is said where there is no journal.
const onlyRecords = "there is no journal here (`leasehold serve --journal FILE` keeps one): these are only the present term of each name and the last 8 before it"

// past writes what became of names in a time.
func (a *app) past(ctx context.Context, q client.JournalQuery, report bool) error {
	return a.WithStore(ctx, false, func(st store.Store) error {
		var from time.Time
		q.OnFrom = func(at time.Time) { from = at }
		spans, err := a.spans(ctx, st, q)
		if err != nil {
			return err
		}
		slices.SortStableFunc(spans, func(a, b api.Span) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Name, b.Name)) })
		switch {
		case report:
			_, err = a.Out.WriteString(incident.Report(spans, q.Since, q.Until, from))
			return err
		case a.Output() != output.Table:
			return output.WriteList(a.Out, spans, a.Output() == output.Lines)
		case from.After(q.Since):
			a.Say("the journal is complete from %s on", from.UTC().Format("2006-01-02 15:04:05 UTC"))
		}
		if len(spans) == 0 {
			a.Say("nothing is known of that time")
			return nil
		}
		return output.WriteTable(a.Out, spanColumns(spans, a.Clock.Wall()), output.Width(a.Out), nil)
	})
}

// spans reads the server's journal, or the records where there is none.
func (a *app) spans(ctx context.Context, st store.Store, q client.JournalQuery) (all []api.Span, err error) {
	j, ok := st.(journaled)
	if !ok {
		a.Say(onlyRecords)
		return recorded(ctx, st, q)
	}
	for s, err := range j.Journal(ctx, q) {
		switch {
		case errors.Is(err, client.ErrNoJournal):
			a.Say(onlyRecords)
			return recorded(ctx, st, q)
		case err != nil:
			return nil, err
		}
		all = append(all, api.Span{
			Name: s.Name, Kind: api.SpanKind(s.Kind), Holder: s.Holder, Token: s.Token, From: s.From, Until: s.Until, Ended: s.Ended, Note: s.Note,
			NameKind: s.NameKind, Session: s.Session, Zone: s.Zone,
		})
	}
	return all, nil
}

// recorded returns the terms that records remember.
func recorded(ctx context.Context, st store.Store, q client.JournalQuery) (all []api.Span, err error) {
	add := func(rec store.Record) {
		terms := api.PastOf(rec)
		if rec.Owner != "" && rec.Intervention != store.InterventionHandedOver {
			terms = append(terms, api.Term{Holder: rec.Owner, Token: rec.Token, From: rec.Acquired})
		}
		for _, t := range terms {
			s := api.Span{Name: rec.Key, Kind: api.SpanTerm, Holder: t.Holder, Token: t.Token, From: t.From, Until: t.Until, Ended: t.Ended}
			by := q.Holder == "" || s.Holder == q.Holder || strings.HasPrefix(s.Holder, q.Holder+"/")
			if by && !s.From.After(q.Until) && (s.Until.IsZero() || !s.Until.Before(q.Since)) {
				all = append(all, s)
			}
		}
	}
	if q.Name != "" {
		rec, err := store.Load(ctx, st, q.Name)
		add(rec)
		return all, err
	}
	for rec, err := range st.List(ctx, q.Prefix) {
		switch {
		case errors.Is(err, store.ErrCorrupt): // `list` shows it
		case err != nil:
			return nil, err
		case !keyspace.Reserved(rec.Key) && rec.Kind != store.KindPool:
			add(rec)
		}
	}
	return all, nil
}

func spanColumns(spans []api.Span, now time.Time) []output.Column {
	from, until := output.Column{Title: "FROM"}, output.Column{Title: "UNTIL"}
	name, what := output.Column{Title: "NAME", Cut: true}, output.Column{Title: "WHAT"}
	token, holder, why := output.Column{Title: "TOKEN"}, output.Column{Title: "HOLDER", Cut: true}, output.Column{Title: "ENDED", Cut: true}
	for _, s := range spans {
		end, of := "-", "-"
		if !s.Until.IsZero() {
			end = output.At(s.Until, now)
		}
		if s.Token != 0 {
			of = s.Token.String()
		}
		from.Cells, until.Cells = append(from.Cells, output.At(s.From, now)), append(until.Cells, end)
		name.Cells, what.Cells = append(name.Cells, s.Name), append(what.Cells, string(s.Kind))
		token.Cells, holder.Cells = append(token.Cells, of), append(holder.Cells, output.OrDash(output.Plain(s.Holder)))
		why.Cells = append(why.Cells, output.OrDash(output.Plain(incident.Remark(s))))
	}
	return []output.Column{from, until, name, what, token, holder, why}
}
