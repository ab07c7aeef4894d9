package api

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Answers to what is asked most often are written without reflection, as encoding/json writes them
// by the tags of the types: a field that is added to [Grant] or [Lease] without being added here
// fails TestAppendWritesEveryField.

// Append appends g as JSON to b. It fails where encoding/json does.
func (g *Grant) Append(b []byte) ([]byte, error) {
	if !g.plain() {
		text, err := json.Marshal(g)
		return append(b, text...), err
	}
	b = appendText(append(b, `{"name":`...), g.Name)
	b = appendText(append(b, `,"state":`...), string(g.State))
	b = appendField(b, `,"holder":`, g.Holder)
	b = strconv.AppendUint(append(b, `,"token":`...), uint64(g.Token), 10)
	b = appendSeconds(b, `,"ttl":`, g.TTL)
	b = appendField(b, `,"session":`, g.Session)
	if g.Acquired != nil {
		b = append(g.Acquired.AppendFormat(append(b, `,"acquired":"`...), time.RFC3339Nano), '"')
	}
	b = appendSeconds(b, `,"expires_in":`, g.ExpiresIn)
	b = appendSeconds(b, `,"silent_for":`, g.Silent)
	b = appendField(b, `,"note":`, g.Note)
	b = strconv.AppendInt(append(b, `,"waiters":`...), int64(g.Waiters), 10)
	b = appendSeconds(b, `,"valid_for":`, g.ValidFor)
	b = appendSeconds(b, `,"renew_every":`, g.RenewEvery)
	b = appendText(append(b, `,"sequencer":`...), g.Sequencer)
	b = appendField(b, `,"secret":`, g.Secret)
	b = appendSeconds(b, `,"waited":`, g.Waited)
	return append(b, '}'), nil
}

// plain reports whether a grant has nothing but what most have: no fields with a form of their own,
// and a date in UTC that can be written.
func (g *Grant) plain() bool {
	if g.Acquired != nil {
		if year := g.Acquired.Year(); year < 0 || year > 9999 || g.Acquired.Location() != time.UTC {
			return false
		}
	}
	return g.Kind == "" && g.Limit == 0 && len(g.Info) == 0 && len(g.Holders) == 0 && len(g.Waiting) == 0 && g.Paused == nil &&
		len(g.Pauses) == 0 && len(g.Candidates) == 0 && len(g.Past) == 0 && g.Problem == nil && g.Turn == nil && g.CompletedTurn == nil
}

// appendField appends a name and a text, unless that is empty.
func appendField(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(append(b, name...), text)
}

func appendSeconds(b []byte, name string, s *Seconds) []byte {
	if s == nil {
		return b
	}
	return s.Append(append(b, name...))
}

// Append appends s to b as MarshalJSON writes it.
func (s Seconds) Append(b []byte) []byte {
	ms := math.Ceil(float64(s) / float64(time.Millisecond))
	return strconv.AppendFloat(b, ms/1000, 'f', -1, 64)
}

func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			text, _ := json.Marshal(s) // a string
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
