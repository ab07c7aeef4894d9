package rdlm

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // an ETag, as RDLM makes it: no secret
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/store"
)

// say answers as RDLM does where it has no JSON to send.
func say(w http.ResponseWriter, status int, msg string) {
	w.Header().Set("Content-Type", typeHTML)
	w.WriteHeader(status)
	// A client that has gone needs no answer.
	_, _ = fmt.Fprintf(w, "<html><title>%d: %s</title><body>%d: %s</body></html>", status, msg, status, msg)
}

// typeHTML is the type of all that isn't HAL.
const typeHTML = "text/html; charset=UTF-8"

func none(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }

// tell adds what RDLM doesn't have: the token.
func tell(w http.ResponseWriter, rec store.Record) {
	w.Header().Set(api.HeaderToken, rec.Token.String())
}

type link struct {
	Href string `json:"href"`
}

type links struct {
	Self     link  `json:"self"`
	Resource *link `json:"resource,omitempty"`
}

// lock is a lock or a place in a queue, as HAL. One of the pairs of times is there.
type lock struct {
	UID           string          `json:"uid"`
	Title         json.RawMessage `json:"title"`
	ActiveSince   string          `json:"active_since,omitempty"`
	WaitSince     string          `json:"wait_since,omitempty"`
	Links         links           `json:"_links"`
	ActiveExpires string          `json:"active_expires,omitempty"`
	WaitExpires   string          `json:"wait_expires,omitempty"`
	Active        bool            `json:"active"`
	Lifetime      int64           `json:"lifetime"`
	Wait          int64           `json:"wait"`
	Token         uint64          `json:"token,omitempty"`
}

func newLock(name, uid string, info map[string]string, alone bool) lock {
	l := lock{UID: uid, Title: json.RawMessage(info[infoTitle]), Links: links{Self: link{lockHref(name, uid)}}}
	if !json.Valid(l.Title) {
		l.Title = json.RawMessage(`""`) // held by other means than RDLM's
	}
	l.Lifetime, _ = strconv.ParseInt(info[infoLifetime], 10, 64)
	l.Wait, _ = strconv.ParseInt(info[infoWait], 10, 64)
	if alone {
		l.Links.Resource = &link{"/resources/" + name}
	}
	return l
}

// active shows a lock that is held.
func (h *Handler) active(rec store.Record, uid string, alone bool) lock {
	l := newLock(rec.Key, uid, rec.Info, alone)
	if _, ok := rec.Info[infoLifetime]; !ok {
		l.Lifetime = int64(rec.TTL / time.Second)
	}
	l.ActiveSince = naive(rec.Acquired)
	l.ActiveExpires = naive(h.expires(rec))
	l.Active, l.Token = true, uint64(rec.Token)
	return l
}

// expires is when a lock's lifetime is over: the same time whenever it is asked, lest a tag that a
// client has is never good again.
func (h *Handler) expires(rec store.Record) time.Time {
	end := h.clk.Wall().Add(h.obs.Saw(rec).ExpiresIn)
	if first := rec.Acquired.Add(rec.TTL); first.Sub(end).Abs() < time.Second { // not renewed
		return first
	}
	return end.Round(steady)
}

// steady is what times are rounded to that are reckoned by two clocks.
const steady = 10 * time.Millisecond

// shown is what others see for the uid of a waiter.
func shown(q lessor.Waiter) string {
	if uid, ok := shownUID(q.Owner); ok {
		return uid
	}
	return q.Owner
}

// queued shows a place in a queue.
func (h *Handler) queued(name, uid string, q lessor.Waiter, alone bool) lock {
	l := newLock(name, uid, q.Info, alone)
	now, wall := h.clk.Now(), h.clk.Wall()
	l.WaitSince, l.WaitExpires = naive(wall.Add(q.Since.Sub(now)).Round(steady)), naive(wall.Add(q.Until.Sub(now)).Round(steady))
	return l
}

// naive writes a time as Python's datetime does that knows no zone.
func naive(t time.Time) string { return t.Local().Format("2006-01-02T15:04:05.000000") }

// hal sends v as HAL, unless the client has it.
func (h *Handler) hal(w http.ResponseWriter, r *http.Request, v any) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	if err := e.Encode(v); err != nil {
		say(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	tagged(w, r, "application/hal+json", bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}

// tagged sends a body, unless the client has it.
func tagged(w http.ResponseWriter, r *http.Request, kind string, body []byte) {
	sum := sha1.Sum(body) //nolint:gosec // see the import
	tag := `"` + hex.EncodeToString(sum[:]) + `"`
	w.Header()["Etag"] = []string{tag}
	if matches(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
}

// matches reports whether one of the tags that a client has is tag.
func matches(header, tag string) bool {
	for have := range strings.SplitSeq(header, ",") {
		have = strings.TrimPrefix(strings.TrimSpace(have), "W/")
		if have == tag || have == "*" {
			return true
		}
	}
	return false
}
