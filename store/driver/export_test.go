package driver

import (
	"encoding/json"
	"time"

	"github.com/leasehold/leasehold/store"
)

// ReadRecord and ReadAny are the two readers behind Unmarshal.
var (
	ReadRecord = readRecord
	ReadAny    = readAny
)

// MarshalByReflection is what Marshal has to write, by encoding/json.
func MarshalByReflection(rec store.Record) ([]byte, error) {
	w := wire{
		Format: format, Owner: rec.Owner, Token: rec.Token, Session: rec.Session, Mark: rec.Intervention, Note: rec.Note, Kind: rec.Kind,
		Info: rec.Info, Past: rec.Past, Data: rec.Data, Nonce: rec.Nonce,
	}
	if rec.TTL != 0 {
		w.TTL = rec.TTL.String()
	}
	if !rec.Acquired.IsZero() {
		at := rec.Acquired.UTC()
		w.Acquired = &at
	}
	return json.Marshal(w)
}

// MarshalJSON returns the terms in their short form.
func (p wirePast) MarshalJSON() ([]byte, error) {
	owners, reasons := map[string]int{}, map[string]int{}
	list := make([][]any, len(p))
	for i, t := range p {
		epoch := time.UnixMilli(int64(t.Token))
		list[i] = []any{shared(owners, t.Owner, i), t.Token, date(epoch, t.From.UTC()), date(t.From.UTC(), t.Until.UTC())}
		if why := shared(reasons, t.Why, i); t.Why != "" {
			list[i] = append(list[i], why)
		}
	}
	return json.Marshal(list)
}

func shared(seen map[string]int, text string, i int) any {
	if at, ok := seen[text]; ok {
		return at
	}
	seen[text] = i
	return text
}

func date(from, t time.Time) any {
	if d := t.Sub(from); d.Abs() < 1<<53 {
		return int64(d)
	}
	return t
}
