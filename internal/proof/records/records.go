// Package records draws records for the property tests of stores and of what keeps records.
package records

import (
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// Any generates records that a store takes, without a Version and an Age.
func Any() *rapid.Generator[store.Record] {
	letter := rapid.RuneFrom([]rune("aZ09 /._-%*?'\"\\<&ßé\u0301日🔒"))
	text := rapid.StringOfN(letter, -1, 40, store.MaxKey)
	anyText := rapid.StringN(-1, 40, -1)
	date := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "no date") {
			return time.Time{}
		}
		sec := rapid.Int64Range(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC).Unix()).Draw(t, "second")
		zone := time.FixedZone("", rapid.IntRange(-14*60, 14*60).Draw(t, "zone")*60)
		return time.Unix(sec, rapid.Int64Range(0, 999999999).Draw(t, "ns")).In(zone)
	})
	token := rapid.Map(rapid.Uint64Range(0, uint64(fence.MaxToken)), func(n uint64) fence.Token { return fence.Token(n) })
	term := rapid.Custom(func(t *rapid.T) store.Term {
		return store.Term{
			Owner: text.Draw(t, "owner"), Token: token.Draw(t, "token"),
			From: date.Draw(t, "from"), Until: date.Draw(t, "until"), Why: text.Draw(t, "why"),
		}
	})
	usual := rapid.Custom(func(t *rapid.T) store.Term { // as leases leave them
		few, soon := rapid.SampledFrom([]string{"", "a", "b"}), rapid.Int64Range(-1<<54, 1<<54)
		token := rapid.Uint64Range(0, 1<<43).Draw(t, "token")
		from := time.UnixMilli(int64(token)).Add(time.Duration(soon.Draw(t, "acquired after")))
		return store.Term{
			Owner: few.Draw(t, "owner"), Token: fence.Token(token), Why: few.Draw(t, "why"),
			From: from, Until: from.Add(time.Duration(soon.Draw(t, "held for"))),
		}
	})
	return rapid.Custom(func(t *rapid.T) store.Record {
		rec := store.Record{
			Key:   rapid.StringOfN(letter, 1, 40, store.MaxKey).Draw(t, "key"),
			Owner: text.Draw(t, "owner"), Token: token.Draw(t, "token"),
			TTL:     time.Duration(rapid.Int64Range(0, int64(store.MaxTTL)).Draw(t, "ttl")),
			Session: text.Draw(t, "session"), Acquired: date.Draw(t, "acquired"),
			Intervention: rapid.SampledFrom([]store.Intervention{"", store.InterventionBroken, store.InterventionHandedOver, store.InterventionNotice}).Draw(t, "mark"),
			Note:         text.Draw(t, "note"), Kind: store.Kind(text.Draw(t, "kind")), Info: rapid.MapOfN(anyText, anyText, -1, 8).Draw(t, "info"),
			Past: rapid.SliceOfN(rapid.OneOf(term, usual), -1, store.MaxPast).Draw(t, "past"), Data: rapid.SliceOfN(rapid.Byte(), -1, 500).Draw(t, "data"),
			Nonce: text.Draw(t, "nonce"),
		}
		if rec.Owner != "" {
			rec.Token, rec.TTL = max(rec.Token, 1), max(rec.TTL, store.MinTTL)
		}
		return rec
	})
}
