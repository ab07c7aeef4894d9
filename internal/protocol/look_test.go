package protocol

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A leader's term is over as soon as its record says anything but what its claim wrote, and the reason says what.
func TestOusted(t *testing.T) {
	term := store.Record{Key: "job", Version: "3", Owner: "me", Token: 50, Session: ".session/me", TTL: rigTTL, Nonce: "n1"}
	for name, c := range map[string]struct {
		rec  func(rec *store.Record)
		want Cause
		says string
	}{
		"as it was claimed":                          {func(rec *store.Record) {}, NotLost, ""},
		"with another version":                       {func(rec *store.Record) { rec.Version = "4" }, NotLost, ""},
		"with a mark that leaves the session":        {func(rec *store.Record) { rec.Intervention = store.InterventionBroken }, NotLost, ""},
		"broken":                                     {func(rec *store.Record) { *rec = Broken(*rec, "ops", rigTTL, "x") }, CauseBroken, "by ops"},
		"broken, of another owner":                   {func(rec *store.Record) { *rec = Broken(*rec, "ops", rigTTL, "x"); rec.Owner = "other" }, CauseTaken, "other holds it under token 50"},
		"broken, of a later term":                    {func(rec *store.Record) { *rec = Broken(*rec, "ops", rigTTL, "x"); rec.Token = 51 }, CauseTaken, "me holds it under token 51"},
		"deleted":                                    {func(rec *store.Record) { *rec = store.Record{Key: "job"} }, CauseTaken, "gone"},
		"freed":                                      {func(rec *store.Record) { rec.Owner, rec.Session = "", "" }, CauseTaken, "freed"},
		"freed after a later term":                   {func(rec *store.Record) { rec.Owner, rec.Session, rec.Token = "", "", 60 }, CauseTaken, "freed"},
		"of another owner under the same token":      {func(rec *store.Record) { rec.Owner = "other" }, CauseTaken, "other holds it under token 50"},
		"taken":                                      {func(rec *store.Record) { rec.Owner, rec.Token, rec.Session = "other", 51, ".session/other" }, CauseTaken, "other holds it under token 51"},
		"taken by the same owner":                    {func(rec *store.Record) { rec.Token = 51 }, CauseTaken, "me holds it under token 51"},
		"put back from a copy":                       {func(rec *store.Record) { rec.Token = 49 }, CauseTaken, "token 49, of an earlier term"},
		"free, put back from a copy":                 {func(rec *store.Record) { rec.Owner, rec.Session, rec.Token = "", "", 49 }, CauseTaken, "token 49, of an earlier term"},
		"kept by another session of the same owner":  {func(rec *store.Record) { rec.Session = ".session/2" }, CauseTaken, "another session, \".session/2\""},
		"without its session, which would not renew": {func(rec *store.Record) { rec.Session = "" }, CauseTaken, "another session, \"\""},
	} {
		rec := term
		c.rec(&rec)
		cause, err := Ousted(rec, term)
		if cause != c.want || (err != nil) != (c.want != NotLost) {
			t.Errorf("%s: cause %d, %v; want cause %d", name, cause, err, c.want)
		} else if err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q doesn't say %q", name, err, c.says)
		}
	}
}
