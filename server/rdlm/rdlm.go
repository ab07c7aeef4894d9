package rdlm

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/grants"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Options of a [Handler].
type Options struct {
	// Strict keeps RDLM's own faults: 500 for some requests that aren't valid.
	Strict bool
	// Admin says who may use /resources. The zero value: nobody.
	Admin Admin
	// MaxBody bounds the body of a request, in bytes: 64 KiB by default.
	MaxBody int64
	// Enter, if set, is asked before a request waits, and returns what is called when it waits no more, or why it may not.
	Enter func(*http.Request) (leave func(), err error)
}

// Handler speaks RDLM's protocol. It is an [http.Handler] for the paths /, /locks and /resources.
type Handler struct {
	reg  *grants.Registry
	st   store.Store
	clk  clock.Clock
	opts Options
}

// New returns a handler that grants names by reg and reads them from st, by the clock clk.
func New(reg *grants.Registry, st store.Store, clk clock.Clock, opts Options) *Handler {
	if opts.MaxBody == 0 {
		opts.MaxBody = 64 << 10
	}
	return &Handler{reg: reg, st: st, clk: clk, opts: opts}
}

// welcome is what GET / says.
const welcome = "Welcome on restful-distributed-lock-manager !"

var (
	lockPath     = regexp.MustCompile(`^/locks/([a-zA-Z0-9]+)$`)
	ownedPath    = regexp.MustCompile(`^/locks/([a-zA-Z0-9]+)/([a-zA-Z0-9]+)$`)
	resourcePath = regexp.MustCompile(`^/resources/([a-zA-Z0-9]+)$`)
	uidFormat    = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// Serves reports whether a path is one of RDLM's, apart from /.
func Serves(path string) bool {
	return strings.HasPrefix(path, "/locks/") || path == "/resources" || strings.HasPrefix(path, "/resources/")
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	methods := map[string]func(){}
	admin := false
	if m := lockPath.FindStringSubmatch(path); m != nil {
		methods[http.MethodPost] = func() { h.acquire(w, r, m[1]) }
	} else if m := ownedPath.FindStringSubmatch(path); m != nil {
		methods[http.MethodGet] = func() { h.show(w, r, m[1], m[2]) }
		methods[http.MethodPut] = func() { h.renew(w, r, m[1], m[2]) }
		methods[http.MethodDelete] = func() { h.release(w, r, m[1], m[2]) }
	} else if path == "/resources" {
		admin = true
		methods[http.MethodGet] = func() { h.resources(w, r) }
		methods[http.MethodDelete] = func() { h.unlockAll(w, r) }
	} else if m := resourcePath.FindStringSubmatch(path); m != nil {
		admin = true
		methods[http.MethodGet] = func() { h.resource(w, r, m[1]) }
		methods[http.MethodDelete] = func() { h.unlock(w, r, m[1]) }
	} else if path == "/" {
		methods[http.MethodGet] = func() { plain(w, welcome) }
	} else {
		say(w, http.StatusNotFound, "Not Found")
		return
	}
	serve := methods[r.Method]
	switch {
	case serve == nil:
		say(w, http.StatusMethodNotAllowed, "Method Not Allowed")
	case admin && !h.opts.Admin.admit(w, r):
	default:
		serve()
	}
}

func (h *Handler) acquire(w http.ResponseWriter, r *http.Request, name string) {
	ask, err := h.parse(w, r)
	if err != nil {
		h.invalid(w, err)
		return
	}
	req := grants.Request{
		Key: name, Owner: owner(ask.uid), TTL: ask.ttl(), Wait: ask.waiting(), ID: requestID(ask.uid), Info: ask.info(),
	}
	if h.opts.Enter != nil && req.Wait > 0 {
		leave, err := h.opts.Enter(r)
		if err != nil {
			w.Header().Set("Retry-After", "1")
			say(w, http.StatusTooManyRequests, err.Error())
			return
		}
		defer leave()
	}
	g, err := h.reg.Acquire(r.Context(), req)
	var held *lease.HeldError
	switch {
	case errors.As(err, &held):
		say(w, http.StatusRequestTimeout, "lock request (wait) timeout")
	case errors.Is(err, grants.ErrRemoved), errors.Is(err, grants.ErrReplaced), errors.Is(err, grants.ErrClosed):
		say(w, http.StatusConflict, "lock request deleted")
	case err != nil:
		h.failed(w, err)
	default:
		url := location(r) + lockHref(name, ask.uid)
		w.Header().Set("Location", url)
		tell(w, g.Record)
		say(w, http.StatusCreated, "lock acquired at "+url)
	}
}

// find returns the record of a lock that is active under that uid.
func (h *Handler) find(ctx context.Context, name, uid string) (store.Record, bool, error) {
	rec, err := store.Load(ctx, h.st, name)
	return rec, err == nil && rec.Owner == owner(uid) && rec.Mark == "" && !expired(rec), err
}

// expired reports whether a lock's lifetime is over, as far as the store knows its age.
func expired(rec store.Record) bool { return rec.Session == "" && rec.Age >= rec.TTL }

func (h *Handler) show(w http.ResponseWriter, r *http.Request, name, uid string) {
	rec, active, err := h.find(r.Context(), name, uid)
	if err != nil {
		h.failed(w, err)
		return
	}
	if active {
		tell(w, rec)
		h.hal(w, r, h.active(rec, uid, true))
		return
	}
	for _, q := range h.reg.Waiting(name) {
		if q.ID == requestID(uid) {
			h.hal(w, r, h.queued(name, q, true))
			return
		}
	}
	say(w, http.StatusNotFound, "lock not found")
}

func (h *Handler) renew(w http.ResponseWriter, r *http.Request, name, uid string) {
	rec, active, err := h.find(r.Context(), name, uid)
	if err == nil && active {
		var g grants.Grant
		if g, err = h.reg.Renew(r.Context(), name, rec.Owner, rec.Token, 0); err == nil {
			tell(w, g.Record)
			h.hal(w, r, h.active(g.Record, uid, true))
			return
		}
	}
	h.gone(w, err)
}

func (h *Handler) release(w http.ResponseWriter, r *http.Request, name, uid string) {
	rec, active, err := h.find(r.Context(), name, uid)
	if err == nil && active {
		if _, err = h.reg.Release(r.Context(), name, rec.Owner, rec.Token, "released"); err == nil {
			none(w)
			return
		}
	} else if err == nil && h.reg.Remove(name, requestID(uid)) > 0 {
		none(w)
		return
	}
	h.gone(w, err)
}

// gone answers for a lock that is not there, or that could not be looked for.
func (h *Handler) gone(w http.ResponseWriter, err error) {
	var lost *lease.LostError
	if err == nil || errors.Is(err, lease.ErrNotCurrent) || errors.As(err, &lost) {
		say(w, http.StatusNotFound, "lock not found")
		return
	}
	h.failed(w, err)
}

func (h *Handler) failed(w http.ResponseWriter, err error) {
	if errors.Is(err, store.ErrInvalid) {
		h.invalid(w, &requestError{http.StatusBadRequest, err.Error()})
		return
	}
	w.Header().Set("Retry-After", "1")
	say(w, http.StatusServiceUnavailable, "Service Unavailable")
}

func owner(uid string) string     { return "rdlm/" + uid }
func requestID(uid string) string { return "rdlm/" + uid }

// uidOf returns the uid of an owner, and whether it is RDLM's.
func uidOf(owner string) (string, bool) { return strings.CutPrefix(owner, "rdlm/") }

func newUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return hex.EncodeToString(b[:])
}

func lockHref(name, uid string) string { return "/locks/" + name + "/" + uid }

// location is what a client reached this server by.
func location(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s", scheme, r.Host)
}
