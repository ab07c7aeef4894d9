// Package incident writes the report of an incident, from what the journal of a lock server says:
// the command prints it, and the server gives it to its page.
package incident

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/protocol"
)

// Report returns what became of names between since and until, in Markdown, the worst first. from
// is from when on the journal is complete; the report says so if that is later than since. What
// records say can't leave its place in the text.
func Report(spans []api.Span, since, until, from time.Time) string {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b api.Span) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Name, b.Name)) })
	return newReport(spans, since, until, from).markdown()
}

// Remark is why a span ended, and what was noted.
func Remark(s api.Span) string {
	if s.Ended != "" && s.Note != "" {
		return fmt.Sprintf("%s (%s)", s.Ended, s.Note)
	}
	return s.Ended + s.Note
}

// report is what became of names in a time, for people who want to know what went wrong.
type report struct {
	since, until, from time.Time
	spans              []api.Span
	lost               []api.Span // terms that their holders didn't end, the worst first
	gaps               []gap      // the worst first
	names              int
}

// gap is a time in which nobody held a name.
type gap struct {
	name        string
	from, until time.Time
	after       api.Span // the term before
	last        bool     // nobody has taken it since
	waited      bool     // somebody waited for it meanwhile
}

func (g gap) length() time.Duration { return g.until.Sub(g.from) }

func newReport(spans []api.Span, since, until, from time.Time) *report {
	r := &report{since: since, until: until, from: from, spans: spans}
	byName := map[string][]api.Span{}
	for _, s := range spans {
		byName[s.Name] = append(byName[s.Name], s)
		if s.Kind == api.SpanTerm && badness(s) > 0 && s.Until.After(since) && !s.Until.After(until) {
			r.lost = append(r.lost, s)
		}
	}
	r.names = len(byName)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		r.gaps = append(r.gaps, gapsOf(name, byName[name], since, until)...)
	}
	slices.SortStableFunc(r.lost, func(a, b api.Span) int { return cmp.Or(badness(b)-badness(a), a.Until.Compare(b.Until)) })
	slices.SortStableFunc(r.gaps, func(a, b gap) int {
		return cmp.Or(flag(b.waited)-flag(a.waited), min(badness(b.after), 1)-min(badness(a.after), 1), cmp.Compare(b.length(), a.length()))
	})
	return r
}

func flag(is bool) int {
	if is {
		return 1
	}
	return 0
}

// badness is how bad the end of a term is: 0 if its holder wanted it.
func badness(s api.Span) int {
	switch {
	case s.Until.IsZero() || s.Ended == protocol.WhyReleased || strings.HasPrefix(s.Ended, protocol.WhyHanded):
		return 0
	case strings.HasPrefix(s.Ended, protocol.WhyExpired):
		return 3
	case strings.HasPrefix(s.Ended, protocol.WhyBroken):
		return 2
	}
	return 1
}

// gapsOf returns when nobody held a name between since and until, from its first term in that time
// on.
func gapsOf(name string, spans []api.Span, since, until time.Time) (all []gap) {
	var last api.Span
	var held time.Time // until when it was
	note := func(to time.Time, ends bool) {
		from := held
		if from.Before(since) {
			from = since
		}
		if to.After(until) {
			to = until
		}
		if held.IsZero() || !from.Before(to) {
			return
		}
		g := gap{name: name, from: from, until: to, after: last, last: ends}
		g.waited = slices.ContainsFunc(spans, func(s api.Span) bool {
			return s.Kind == api.SpanWaiting && s.From.Before(to) && (s.Until.IsZero() || s.Until.After(from))
		})
		all = append(all, g)
	}
	for _, s := range spans { // in the order of their beginnings
		if s.Kind != api.SpanTerm && s.Kind != api.SpanShare {
			continue
		}
		if s.From.After(held) {
			note(s.From, false)
		}
		end := s.Until
		if end.IsZero() {
			end = until
		}
		if end.After(held) {
			held, last = end, s
		}
	}
	if held.Before(until) {
		note(until, true)
	}
	return all
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// span of time, to the tenth of a second below a minute.
func took(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// most is how many lines a part of a report has.
const most = 100

func (r *report) markdown() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Leases from %s to %s\n", utc(r.since), utc(r.until))
	if r.from.After(r.since) {
		line("The journal is complete from %s on.\n", utc(r.from))
	}
	line("- %s, %s", count(r.names, "name", "names"), count(len(r.spans), "term or state", "terms and states"))
	line("- %s", count(len(r.lost), "term that its holder did not end", "terms that their holders did not end"))
	if len(r.gaps) == 0 {
		line("- no time without a holder")
	} else {
		worst := slices.MaxFunc(r.gaps, func(a, b gap) int { return cmp.Compare(a.length(), b.length()) })
		line("- %s, the longest %s (%s, from %s)", count(len(r.gaps), "time without a holder", "times without a holder"), took(worst.length()), cell(worst.name), utc(worst.from))
	}
	r.tables(line)
	return b.String()
}

func (r *report) tables(line func(string, ...any)) {
	rest := func(n int) {
		if n > most {
			line("\n… and %d more.", n-most)
		}
	}
	if len(r.lost) > 0 {
		line("\n## Terms that were lost\n\n| name | holder | token | from | until | ended |\n|---|---|---|---|---|---|")
		for _, s := range r.lost[:min(len(r.lost), most)] {
			line("| %s | %s | %s | %s | %s | %s |", cell(s.Name), cell(s.Holder), s.Token, utc(s.From), utc(s.Until), cell(Remark(s)))
		}
		rest(len(r.lost))
	}
	if len(r.gaps) > 0 {
		line("\n## Times without a holder\n\n| name | for | from | until | the term before | waiters |\n|---|---|---|---|---|---|")
		for _, g := range r.gaps[:min(len(r.gaps), most)] {
			end, waited := utc(g.until), "no"
			if g.last {
				end += ", still free then"
			}
			if g.waited {
				waited = "yes"
			}
			line("| %s | %s | %s | %s | %s of %s | %s |", cell(g.name), took(g.length()), utc(g.from), end, cell(cmp.Or(g.after.Ended, "ended")), cell(g.after.Holder), waited)
		}
		rest(len(r.gaps))
	}
	changes := r.changes()
	if len(changes) > 0 {
		line("\n## What changed\n\n| time | name | what | holder | token |\n|---|---|---|---|---|")
		for _, c := range changes[max(len(changes)-most, 0):] {
			token := ""
			if c.of.Token != 0 {
				token = c.of.Token.String()
			}
			line("| %s | %s | %s | %s | %s |", utc(c.at), cell(c.of.Name), cell(c.what), cell(c.of.Holder), token)
		}
		if n := len(changes) - most; n > 0 {
			line("\nThese are the last %d; %d came before.", most, n)
		}
	}
}

// change is a beginning or an end.
type change struct {
	at   time.Time
	of   api.Span
	what string
}

// changes are those of the time, in order.
func (r *report) changes() (all []change) {
	begins := map[api.SpanKind]string{
		api.SpanTerm: "acquired", api.SpanShare: "share acquired", api.SpanExpired: "expired", api.SpanBroken: "broken", api.SpanHanded: "handed over",
		api.SpanPaused: "paused", api.SpanWaiting: "requests wait",
	}
	ends := map[api.SpanKind]string{
		api.SpanTerm: "ended", api.SpanShare: "share ended", api.SpanExpired: "no longer expired", api.SpanBroken: "no longer broken", api.SpanHanded: "hand-over over",
		api.SpanPaused: "resumed", api.SpanWaiting: "nobody waits",
	}
	within := func(t time.Time) bool { return !t.Before(r.since) && !t.After(r.until) }
	for _, s := range r.spans {
		if within(s.From) {
			what := begins[s.Kind]
			if s.Note != "" {
				what += ": " + s.Note
			}
			all = append(all, change{s.From, s, what})
		}
		if !s.Until.IsZero() && within(s.Until) {
			all = append(all, change{s.Until, s, cmp.Or(s.Ended, ends[s.Kind])})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return a.at.Compare(b.at) })
	return all
}

// cell is text from a record within a table of Markdown, which it can't leave.
func cell(s string) string {
	if s == "" {
		return ""
	}
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "'", "[", `\[`, "*", `\*`, "_", `\_`).Replace(plain(s))
}

// plain is text without characters that a terminal, or a line of Markdown, would take for its own.
func plain(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
