package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// Most of a busy name's record is its past, and each write carries it. So a term is
//
//	["owner",token,from,until,"why"]
//
// where from counts nanoseconds from the token, read as Unix time in milliseconds, which it nearly
// is; until counts nanoseconds from from; a number for owner or why means the same as in the term
// of that index, a newer one; and an empty why is left out. A date that is too far away for a
// number is written as RFC 3339. Readers take a term as an object, too: {"owner":…,"token":…,
// "from":…,"until":…,"why":…}.

// near is what a number of nanoseconds is below, 104 days: every reader of JSON has it exactly.
const near = 1 << 53

// base is what from counts from.
func base(token fence.Token) time.Time { return time.UnixMilli(int64(token)).UTC() }

func appendPast(b []byte, past []store.Term) []byte {
	separator := byte('[')
	for i, t := range past {
		b = appendTerm(append(b, separator), t, past[:i])
		separator = ','
	}
	return append(b, ']')
}

// MarshalTerm returns a term of a record that passed [Check], as JSON. It is for engines that keep
// terms apart from their record.
func MarshalTerm(t store.Term) []byte {
	const numbers = 64
	return appendTerm(make([]byte, 0, numbers+len(t.Owner)+len(t.Why)), t, nil)
}

func appendTerm(b []byte, t store.Term, newer []store.Term) []byte {
	b = append(b, '[')
	owner, why := 0, 0
	for owner < len(newer) && newer[owner].Owner != t.Owner {
		owner++
	}
	for why < len(newer) && newer[why].Why != t.Why {
		why++
	}
	b = appendShared(b, t.Owner, owner, len(newer))
	b = strconv.AppendUint(append(b, ','), uint64(t.Token), 10)
	b = appendDate(append(b, ','), base(t.Token), t.From)
	b = appendDate(append(b, ','), t.From, t.Until)
	if t.Why != "" {
		b = appendShared(append(b, ','), t.Why, why, len(newer))
	}
	return append(b, ']')
}

// appendShared appends a text, or the index of the term that has the same, if that is below none.
func appendShared(b []byte, text string, same, none int) []byte {
	if same < none {
		return strconv.AppendInt(b, int64(same), 10)
	}
	return appendText(b, text)
}

// appendDate appends t, which passed checkDate.
func appendDate(b []byte, from, t time.Time) []byte {
	// Of the wall clock: a reader has no other.
	if d := t.Round(0).Sub(from.Round(0)); -near < d && d < near {
		return strconv.AppendInt(b, int64(d), 10)
	}
	return appendTime(b, t)
}

func (r *reader) past() []store.Term {
	past := make([]store.Term, 0, store.MaxPast)
	for !r.failed {
		past = append(past, r.term(past))
		if !r.is(`,`) {
			break
		}
	}
	r.want(`]`)
	return past
}

func (r *reader) term(newer []store.Term) store.Term {
	var t store.Term
	r.want(`[`)
	if i, ok := r.index(len(newer)); ok {
		t.Owner = newer[i].Owner
	} else {
		t.Owner = r.text()
	}
	r.want(`,`)
	t.Token = r.token()
	r.want(`,`)
	t.From = r.date(base(t.Token))
	r.want(`,`)
	t.Until = r.date(t.From)
	if r.is(`,`) {
		if i, ok := r.index(len(newer)); ok {
			t.Why = newer[i].Why
		} else {
			t.Why = r.text()
		}
	}
	r.want(`]`)
	return t
}

// index takes a digit below n.
func (r *reader) index(n int) (int, bool) {
	if len(r.rest) == 0 || r.rest[0] < '0' || int(r.rest[0]-'0') >= n {
		return 0, false
	}
	i := int(r.rest[0] - '0')
	r.rest = r.rest[1:]
	return i, true
}

func (r *reader) date(from time.Time) time.Time {
	if len(r.rest) > 0 && r.rest[0] == '"' {
		return r.time()
	}
	sign := time.Duration(1)
	if r.is(`-`) {
		sign = -1
	}
	n := r.token()
	if n >= near || n == 0 && sign < 0 {
		r.failed = true
		return time.Time{}
	}
	return from.Add(sign * time.Duration(n))
}

// wirePast reads terms in any form that JSON allows.
type wirePast []store.Term

// UnmarshalJSON takes a list of terms.
func (p *wirePast) UnmarshalJSON(b []byte) error {
	var terms []json.RawMessage
	if err := json.Unmarshal(b, &terms); err != nil {
		return err
	}
	*p = nil
	for i, text := range terms {
		t, err := readTerm(text, *p)
		if err != nil {
			return fmt.Errorf("past: term %d: %w", i, err)
		}
		*p = append(*p, t)
	}
	return nil
}

func readTerm(b []byte, newer []store.Term) (store.Term, error) {
	var parts []json.RawMessage
	if b[0] != '[' {
		var t struct {
			Owner string      `json:"owner"`
			Token fence.Token `json:"token"`
			From  time.Time   `json:"from"`
			Until time.Time   `json:"until"`
			Why   string      `json:"why"`
		}
		err := json.Unmarshal(b, &t)
		return store.Term{Owner: t.Owner, Token: t.Token, From: t.From.UTC(), Until: t.Until.UTC(), Why: t.Why}, err
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return store.Term{}, err
	}
	if len(parts) < 4 {
		return store.Term{}, fmt.Errorf("%d values: want owner, token, from, until and why", len(parts))
	}
	var t store.Term
	var wrong [4]error
	t.Owner, wrong[0] = readShared(parts[0], newer, func(t store.Term) string { return t.Owner })
	if err := json.Unmarshal(parts[1], &t.Token); err != nil {
		return store.Term{}, fmt.Errorf("token: %w", err)
	}
	t.From, wrong[1] = readDate(parts[2], base(t.Token))
	t.Until, wrong[2] = readDate(parts[3], t.From)
	if len(parts) > 4 {
		t.Why, wrong[3] = readShared(parts[4], newer, func(t store.Term) string { return t.Why })
	}
	for i, name := range []string{"owner", "from", "until", "why"} {
		if wrong[i] != nil {
			return store.Term{}, fmt.Errorf("%s: %w", name, wrong[i])
		}
	}
	return t, nil
}

func readShared(b []byte, newer []store.Term, of func(store.Term) string) (string, error) {
	if b[0] == '"' {
		var s string
		err := json.Unmarshal(b, &s)
		return s, err
	}
	i, err := strconv.Atoi(string(b))
	if err != nil || i < 0 || i >= len(newer) {
		return "", fmt.Errorf("%s: want a text, or the index of a newer term", b)
	}
	return of(newer[i]), nil
}

func readDate(b []byte, from time.Time) (time.Time, error) {
	if b[0] == '"' {
		var t time.Time
		err := json.Unmarshal(b, &t)
		return t.UTC(), err
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return time.Time{}, errors.New(string(b) + ": want a date, or nanoseconds")
	}
	return from.Add(time.Duration(n)), nil
}
