package rdlm

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/lessor"
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
	// Quotas, if set, bound what one caller has by this handler.
	Quotas Quotas
	// OnDone, if set, is called for each request for a lock when it has been answered. It must not
	// block.
	OnDone func(*http.Request, Done)
}

// Quotas bound what one caller has, and count it. They must not block.
type Quotas interface {
	// Ask counts what a request asks for, and its wait if it waits. It returns an error if the
	// quota refuses the request. Otherwise it returns a function to call with the record when the
	// request was granted, or with the zero record when it was not.
	Ask(r *http.Request, name string, info map[string]string, waits bool) (settle func(store.Record), err error)
	// Renewed notes that what a caller has was renewed.
	Renewed(r *http.Request, rec store.Record)
	// Over notes that a name was freed.
	Over(name string)
}

// unbounded are the quotas of a handler that was given none.
type unbounded struct{}

func (unbounded) Ask(*http.Request, string, map[string]string, bool) (func(store.Record), error) {
	return func(store.Record) {}, nil
}
func (unbounded) Renewed(*http.Request, store.Record) {}
func (unbounded) Over(string)                         {}

// Done is a request that was answered.
type Done struct {
	// "acquire", "renew", "release", "show"; of administrators "list", "waiters" and "unlock".
	Op     string
	Name   string // "" for all
	Holder string
	Token  fence.Token
	Waited time.Duration
	Err    error // why it was not done; nil when it was
}

// Handler speaks RDLM's protocol. It is an [http.Handler] for the paths /, /locks and /resources.
type Handler struct {
	reg  *lessor.Registry
	st   store.Store
	obs  *lease.Observer
	clk  clock.Clock
	opts Options
}

// New returns a handler that grants names by reg and reads them from st, by the clock clk.
func New(reg *lessor.Registry, st store.Store, clk clock.Clock, opts Options) *Handler {
	if opts.MaxBody == 0 {
		opts.MaxBody = 64 << 10
	}
	if opts.Quotas == nil {
		opts.Quotas = unbounded{}
	}
	return &Handler{reg: reg, st: st, obs: lease.NewObserver(st, lease.ObserverOptions{Clock: clk}), clk: clk, opts: opts}
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
	methods := map[string]op{}
	var name, uid string
	admin := false
	if m := lockPath.FindStringSubmatch(path); m != nil {
		name = m[1]
		methods[http.MethodPost] = op{"acquire", h.acquire}
	} else if m := ownedPath.FindStringSubmatch(path); m != nil {
		name, uid = m[1], m[2]
		methods[http.MethodGet] = op{"show", h.show}
		methods[http.MethodPut] = op{"renew", h.renew}
		methods[http.MethodDelete] = op{"release", h.release}
	} else if path == "/resources" {
		admin = true
		methods[http.MethodGet] = op{"list", h.resources}
		methods[http.MethodDelete] = op{"unlock", h.unlockAll}
	} else if m := resourcePath.FindStringSubmatch(path); m != nil {
		name, admin = m[1], true
		methods[http.MethodGet] = op{"waiters", h.resource}
		methods[http.MethodDelete] = op{"unlock", h.unlock}
	} else if path == "/" && r.Method == http.MethodGet {
		tagged(w, r, typeHTML, []byte(welcome))
		return
	} else if path != "/" {
		say(w, http.StatusNotFound, "Not Found")
		return
	}
	asked, ok := methods[r.Method]
	if !ok {
		say(w, http.StatusMethodNotAllowed, "Method Not Allowed")
		return
	}
	x := &exchange{w: w, r: r, uid: uid, done: Done{Op: asked.name, Name: name}}
	if !admin || h.opts.Admin.admit(x) {
		asked.serve(x)
	}
	if h.opts.OnDone != nil {
		h.opts.OnDone(r, x.done)
	}
}

// op is something that can be asked for.
type op struct {
	name  string
	serve func(*exchange)
}

// exchange is a request and its answer.
type exchange struct {
	w    http.ResponseWriter
	r    *http.Request
	uid  string // in the path
	done Done
}

// of notes which term the exchange is about.
func (x *exchange) of(rec store.Record) { x.done.Holder, x.done.Token = rec.Owner, rec.Token }

func (h *Handler) acquire(x *exchange) {
	w, r, name := x.w, x.r, x.done.Name
	ask, err := h.parse(w, r)
	if err != nil {
		h.invalid(x, err)
		return
	}
	x.done.Holder = owner(ask.uid)
	req := lessor.Request{
		Key: name, Owner: owner(ask.uid), TTL: ask.ttl(), Wait: ask.waiting(), ID: requestID(ask.uid), Info: ask.info(), Secret: ask.uid,
	}
	settle, err := h.opts.Quotas.Ask(r, name, req.Info, req.Wait > 0)
	if x.done.Err = err; err != nil {
		w.Header().Set("Retry-After", "1")
		say(w, http.StatusTooManyRequests, err.Error())
		return
	}
	begun := h.clk.Now()
	g, err := h.reg.Acquire(r.Context(), req)
	if err != nil {
		g.Record = store.Record{}
	}
	settle(g.Record)
	x.done.Waited, x.done.Err = h.clk.Now().Sub(begun), err
	var held *lease.HeldError
	switch {
	case errors.As(err, &held):
		say(w, http.StatusRequestTimeout, "lock request (wait) timeout")
	case errors.Is(err, lessor.ErrRemoved), errors.Is(err, lessor.ErrReplaced), errors.Is(err, lessor.ErrClosed):
		say(w, http.StatusConflict, "lock request deleted")
	case errors.Is(err, store.ErrKind):
		say(w, http.StatusConflict, err.Error())
	case err != nil:
		h.failed(x, err)
	default:
		h.obs.Saw(g.Record) // from now on its lifetime counts
		x.of(g.Record)
		url := location(r) + lockHref(name, ask.uid)
		w.Header().Set("Location", url)
		tell(w, g.Record)
		say(w, http.StatusCreated, "lock acquired at "+url)
	}
}

// find returns the record of a lock that is active under that uid.
func (h *Handler) find(ctx context.Context, name, uid string) (store.Record, bool, error) {
	rec, err := store.Load(ctx, h.st, name)
	return rec, err == nil && h.holds(rec, uid), err
}

// holds reports whether a record is of a lock that is active under that uid.
func (h *Handler) holds(rec store.Record, uid string) bool {
	return rec.Owner == owner(uid) && lessor.Secret(uid)(rec) == nil && rec.Intervention == "" && !h.expired(rec)
}

// expired reports whether a lock's lifetime is over: of one that this server granted by its own
// clock, else as far as the store knows its age, or a lifetime after this server first saw it.
func (h *Handler) expired(rec store.Record) bool {
	return rec.Session == "" && h.obs.Saw(rec).Standing == lease.NameExpired
}

func (h *Handler) show(x *exchange) {
	w, r, name, uid := x.w, x.r, x.done.Name, x.uid
	rec, err := store.Load(r.Context(), h.st, name)
	if err != nil {
		h.failed(x, err)
		return
	}
	// Who was shown the digest may look, and no more.
	if h.holds(rec, uid) || ownerPrefix+uid == rec.Owner && !h.expired(rec) {
		tell(w, rec)
		h.hal(w, r, h.active(rec, uid, true))
		return
	}
	for _, q := range h.reg.Waiting(name) {
		if q.ID == requestID(uid) || q.Owner == ownerPrefix+uid {
			h.hal(w, r, h.queued(name, uid, q, true))
			return
		}
	}
	h.gone(x, nil)
}

func (h *Handler) renew(x *exchange) {
	w, r, name, uid := x.w, x.r, x.done.Name, x.uid
	rec, active, err := h.find(r.Context(), name, uid)
	if err == nil && active {
		x.of(rec)
		var g lessor.Grant
		if g, err = h.reg.Renew(r.Context(), name, rec.Owner, rec.Token, 0, lessor.Secret(uid)); err == nil {
			h.obs.Saw(g.Record)
			h.opts.Quotas.Renewed(r, g.Record)
			tell(w, g.Record)
			h.hal(w, r, h.active(g.Record, uid, true))
			return
		}
	}
	h.gone(x, err)
}

func (h *Handler) release(x *exchange) {
	w, r, name, uid := x.w, x.r, x.done.Name, x.uid
	rec, active, err := h.find(r.Context(), name, uid)
	if err == nil && active {
		x.of(rec)
		if _, err = h.reg.Release(r.Context(), name, rec.Owner, rec.Token, "released", lessor.Secret(uid)); err == nil {
			h.opts.Quotas.Over(name)
			none(w)
			return
		}
	} else if err == nil && h.reg.Remove(name, requestID(uid)) > 0 {
		x.done.Op = "give up" // a place in the queue: nobody's term ends
		none(w)
		return
	}
	h.gone(x, err)
}

// gone answers for a lock that is not there, or that could not be looked for.
func (h *Handler) gone(x *exchange, err error) {
	if err == nil {
		err = &fence.StaleError{Name: x.done.Name}
	}
	var lost *lease.LostError
	if errors.Is(err, fence.ErrStale) || errors.As(err, &lost) {
		x.done.Err = err
		say(x.w, http.StatusNotFound, "lock not found")
		return
	}
	h.failed(x, err)
}

func (h *Handler) failed(x *exchange, err error) {
	if errors.Is(err, store.ErrInvalid) {
		h.invalid(x, &requestError{http.StatusBadRequest, err.Error()})
		return
	}
	x.done.Err = err
	w := x.w
	w.Header().Set("Retry-After", "1")
	say(w, http.StatusServiceUnavailable, "Service Unavailable")
}

// owner is under which a lock is held. Who knows a uid may release its lock, so others are shown
// its digest.
func owner(uid string) string {
	sum := sha256.Sum256([]byte("rdlm uid " + uid))
	return ownerPrefix + hex.EncodeToString(sum[:16])
}

const ownerPrefix = "rdlm/"

func requestID(uid string) string { return "rdlm " + uid }

// shownUID returns what others are shown for the uid of an owner, and whether that is RDLM's.
func shownUID(owner string) (string, bool) { return strings.CutPrefix(owner, ownerPrefix) }

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
