package driver

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// readRecord reads what appendRecord wrote. It reports false for every other form of JSON, for text
// with escapes, and for what is wrong in any way: those are readAny's, which says what is.
func readRecord(b []byte) (store.Record, bool) {
	r := reader{rest: b}
	var rec store.Record
	r.want(`{"v":1`)
	if r.is(`,"owner":`) {
		rec.Owner = r.text()
	}
	r.want(`,"token":`)
	rec.Token = r.token()
	if r.is(`,"ttl":`) {
		rec.TTL = r.duration()
	}
	if r.is(`,"session":`) {
		rec.Session = r.text()
	}
	if r.is(`,"acquired":`) {
		rec.Acquired = r.time()
	}
	if r.is(`,"mark":`) {
		rec.Intervention = store.Intervention(r.text())
	}
	if r.is(`,"note":`) {
		rec.Note = r.text()
	}
	if r.is(`,"kind":`) {
		rec.Kind = store.Kind(r.text())
	}
	if r.is(`,"info":{`) {
		rec.Info = r.info()
	}
	if r.is(`,"past":[`) {
		rec.Past = r.past()
	}
	if r.is(`,"data":`) {
		rec.Data = r.data()
	}
	if r.is(`,"nonce":`) {
		rec.Nonce = r.text()
	}
	r.want(`}`)
	return rec, !r.failed && len(r.rest) == 0
}

// reader takes tokens off the front of bytes. Once it has failed, nothing that it returns counts.
type reader struct {
	rest   []byte
	failed bool
}

// is takes text, if that is what comes next.
func (r *reader) is(text string) bool {
	if len(r.rest) < len(text) || string(r.rest[:len(text)]) != text {
		return false
	}
	r.rest = r.rest[len(text):]
	return true
}

func (r *reader) want(text string) {
	if !r.is(text) {
		r.failed = true
	}
}

// raw takes a string without escapes.
func (r *reader) raw() []byte {
	r.want(`"`)
	ascii := true
	for i, c := range r.rest {
		switch {
		case c == '"':
			s := r.rest[:i]
			r.rest = r.rest[i+1:]
			r.failed = r.failed || !ascii && !utf8.Valid(s)
			return s
		case c == '\\', c < ' ':
			r.failed = true
			return nil
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	r.failed = true
	return nil
}

func (r *reader) text() string { return string(r.raw()) }

func (r *reader) token() fence.Token {
	n := 0
	for n < len(r.rest) && '0' <= r.rest[n] && r.rest[n] <= '9' {
		n++
	}
	v, err := strconv.ParseUint(string(r.rest[:n]), 10, 64)
	if err != nil || r.rest[0] == '0' && n > 1 {
		r.failed = true
	}
	r.rest = r.rest[n:]
	return fence.Token(v)
}

func (r *reader) duration() time.Duration {
	d, err := time.ParseDuration(string(r.raw()))
	r.failed = r.failed || err != nil
	return d
}

func (r *reader) time() time.Time {
	var t time.Time
	if err := t.UnmarshalText(r.raw()); err != nil {
		r.failed = true
	}
	return t.UTC()
}

func (r *reader) data() []byte {
	s := r.raw()
	if len(s) == 0 {
		r.failed = true
		return nil
	}
	data, err := base64.StdEncoding.AppendDecode(make([]byte, 0, base64.StdEncoding.DecodedLen(len(s))), s)
	r.failed = r.failed || err != nil
	return data
}

func (r *reader) info() map[string]string {
	info := map[string]string{}
	for !r.failed {
		k := r.text()
		r.want(`:`)
		info[k] = r.text()
		if !r.is(`,`) {
			break
		}
	}
	r.want(`}`)
	return info
}
