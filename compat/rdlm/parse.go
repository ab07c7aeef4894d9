package rdlm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

// ask is what a client asks for.
type ask struct {
	title          json.RawMessage
	wait, lifetime int64 // seconds
	uid            string
}

// requestError is an answer to a request that isn't valid. Status is what RDLM answers, which may
// be 500.
type requestError struct {
	status int
	msg    string
}

func (e *requestError) Error() string { return e.msg }

var (
	errEmpty    = &requestError{http.StatusBadRequest, "empty body"}
	errJSON     = &requestError{http.StatusBadRequest, "invalid json body"}
	errConfused = &requestError{http.StatusInternalServerError, "Internal Server Error"}
)

// invalid answers a request that isn't valid.
func (h *Handler) invalid(x *exchange, err error) {
	var bad *requestError
	if !errors.As(err, &bad) {
		bad = errJSON
	}
	if bad == errConfused && !h.opts.Strict {
		bad = errJSON
	}
	x.done.Err = api.NewProblem(api.CodeInvalid, "%s", bad.msg)
	say(x.w, bad.status, bad.msg)
}

func (h *Handler) parse(w http.ResponseWriter, r *http.Request) (ask, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.opts.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return ask{}, &requestError{http.StatusRequestEntityTooLarge, "Request Entity Too Large"}
	case err != nil:
		return ask{}, errJSON
	case len(body) == 0:
		return ask{}, errEmpty
	case !utf8.Valid(body):
		return ask{}, errConfused
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		if json.Valid(body) {
			return ask{}, errConfused // a list, a number
		}
		return ask{}, errJSON
	}
	return parseFields(fields)
}

func parseFields(fields map[string]json.RawMessage) (a ask, err error) {
	title, ok := fields["title"]
	if !ok || fields["wait"] == nil || fields["lifetime"] == nil {
		return a, errJSON
	}
	a.title = title
	if a.wait, err = whole(fields["wait"]); err != nil {
		return a, err
	}
	if a.lifetime, err = whole(fields["lifetime"]); err != nil {
		return a, err
	}
	if a.lifetime > int64(store.MaxTTL/time.Second) {
		return a, &requestError{http.StatusBadRequest, "lifetime: want at most " + strconv.Itoa(int(store.MaxTTL/time.Second)) + " seconds"}
	}
	if text, ok := fields["uid"]; ok {
		if json.Unmarshal(text, &a.uid) != nil || !uidFormat.MatchString(a.uid) {
			return a, &requestError{http.StatusBadRequest, "uid: want 32 hexadecimal digits, in lower case"}
		}
		return a, nil
	}
	a.uid = newUID()
	return a, nil
}

// mostSeconds is what RDLM can add to a date.
const mostSeconds = 86_400 * 999_999_999

// whole reads a number as Python's int() does: a fraction is cut off, a string may have a sign and
// spaces around it.
func whole(text json.RawMessage) (int64, error) {
	var word string
	if json.Unmarshal(text, &word) == nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte{'"'}) {
		n, ok := new(big.Int).SetString(strings.TrimPrefix(strings.TrimSpace(word), "+"), 10)
		if !ok {
			return 0, errJSON
		}
		return bounded(n)
	}
	switch string(text) {
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	}
	f, _, err := big.ParseFloat(string(text), 10, 64, big.ToZero)
	if err != nil || f.IsInf() || f.MantExp(nil) > 1100 {
		return 0, errConfused // null, a list, an object, or beyond all bounds
	}
	n, _ := f.Int(nil)
	return bounded(n)
}

func bounded(n *big.Int) (int64, error) {
	if n.CmpAbs(big.NewInt(mostSeconds)) > 0 {
		return 0, errConfused
	}
	return n.Int64(), nil
}

// ttl is the lifetime; what is over at once lasts as short as can be.
func (a ask) ttl() time.Duration {
	return max(time.Duration(a.lifetime)*time.Second, store.MinTTL)
}

func (a ask) waiting() time.Duration {
	return time.Duration(min(max(a.wait, 0), math.MaxInt64/int64(time.Second))) * time.Second
}

// The keys of a record's info.
const (
	infoTitle    = "title"
	infoWait     = "wait"
	infoLifetime = "lifetime"
)

func (a ask) info() map[string]string {
	return map[string]string{
		infoTitle: string(a.title), infoWait: strconv.FormatInt(a.wait, 10), infoLifetime: strconv.FormatInt(a.lifetime, 10),
	}
}
