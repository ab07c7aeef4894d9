package store

import "encoding/json"

// ReadRecord and ReadAny are the two readers behind Unmarshal.
var (
	ReadRecord = readRecord
	ReadAny    = readAny
)

// MarshalByReflection is what Marshal has to write, by encoding/json.
func MarshalByReflection(rec Record) ([]byte, error) {
	w := wire{
		Format: format, Owner: rec.Owner, Token: rec.Token, Session: rec.Session, Mark: rec.Mark, Note: rec.Note,
		Info: rec.Info, Data: rec.Data, Nonce: rec.Nonce,
	}
	if rec.TTL != 0 {
		w.TTL = rec.TTL.String()
	}
	if !rec.Acquired.IsZero() {
		at := rec.Acquired.UTC()
		w.Acquired = &at
	}
	for _, t := range rec.Past {
		w.Past = append(w.Past, wireTerm{t.Owner, t.Token, t.From.UTC(), t.Until.UTC(), t.Why})
	}
	return json.Marshal(w)
}
