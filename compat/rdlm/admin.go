package rdlm

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Admin says who may list and unlock the locks of others. The zero value: nobody.
type Admin struct {
	open  bool
	users map[string][sha256.Size]byte // the hash of each user's password
}

// ParseAdmin reads a value of RDLM's --admin_userpass_file: "yes" for everybody, "no" for nobody,
// or the path of a file of user:password lines.
func ParseAdmin(text string) (Admin, error) {
	switch text {
	case "yes":
		return Admin{open: true}, nil
	case "no", "":
		return Admin{}, nil
	}
	file, err := os.ReadFile(text)
	if err != nil {
		return Admin{}, fmt.Errorf("admin_userpass_file %q: want yes, no, or a file of user:password lines: %w", text, err)
	}
	a := Admin{users: map[string][sha256.Size]byte{}}
	for i, line := range strings.Split(string(file), "\n") {
		line = strings.TrimRight(line, "\r")
		if line == "" {
			continue
		}
		user, pass, ok := strings.Cut(line, ":")
		if !ok || user == "" {
			return Admin{}, fmt.Errorf("admin_userpass_file %q: line %d: want user:password", text, i+1)
		}
		a.users[user] = sha256.Sum256([]byte(pass))
	}
	return a, nil
}

// admit reports whether a request may go on, or answers it.
func (a Admin) admit(x *exchange) bool {
	w, r := x.w, x.r
	switch {
	case a.open:
		return true
	case a.users == nil:
		x.done.Err = api.NewProblem(api.CodeForbidden, "nobody may do this here: admin_userpass_file says who may")
		say(w, http.StatusForbidden, "Forbidden")
		return false
	}
	user, pass, _ := r.BasicAuth()
	want, known := a.users[user]
	got := sha256.Sum256([]byte(pass))
	if same := subtle.ConstantTimeCompare(want[:], got[:]) == 1; known && same {
		return true
	}
	x.done.Err = api.NewProblem(api.CodeUnauthenticated, "want a user and a password that admin_userpass_file knows")
	w.Header().Set("WWW-Authenticate", "Basic realm=Restricted")
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusUnauthorized)
	return false
}

type resourceLinks struct {
	Self link `json:"self"`
}

// resource is a name, as HAL.
type resource struct {
	Embedded *struct {
		Locks []lock `json:"locks"`
	} `json:"_embedded,omitempty"`
	Links resourceLinks `json:"_links"`
	Name  string        `json:"name"`
}

// resourceList is all names, as HAL.
type resourceList struct {
	Embedded *struct {
		Resources []resource `json:"resources"`
	} `json:"_embedded,omitempty"`
	Links resourceLinks `json:"_links"`
}

// locked returns the names that RDLM would show: those that are held, in order.
func (h *Handler) locked(ctx context.Context) (names []string, err error) {
	for rec, err := range h.st.List(ctx, "") {
		if errors.Is(err, store.ErrCorrupt) {
			continue // the others are locked all the same
		}
		if err != nil {
			return nil, err
		}
		if rec.Owner != "" && !h.expired(rec) && !keyspace.Reserved(rec.Key) && lockPath.MatchString("/locks/"+rec.Key) {
			names = append(names, rec.Key)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (h *Handler) resources(x *exchange) {
	w, r := x.w, x.r
	names, err := h.locked(r.Context())
	if err != nil {
		h.failed(x, err)
		return
	}
	all := resourceList{Links: resourceLinks{link{"/resources"}}}
	if len(names) > 0 {
		all.Embedded = &struct {
			Resources []resource `json:"resources"`
		}{}
		for _, name := range names {
			all.Embedded.Resources = append(all.Embedded.Resources, resource{Links: resourceLinks{link{"/resources/" + name}}, Name: name})
		}
	}
	h.hal(w, r, all)
}

func (h *Handler) resource(x *exchange) {
	w, r, name := x.w, x.r, x.done.Name
	rec, err := store.Load(r.Context(), h.st, name)
	if err != nil {
		h.failed(x, err)
		return
	}
	one := resource{Links: resourceLinks{link{"/resources/" + name}}, Name: name}
	var locks []lock
	if rec.Owner != "" && !h.expired(rec) {
		uid, ok := shownUID(rec.Owner)
		if !ok {
			uid = rec.Owner // held by other means: shown, and not to be released by its uid
		}
		locks = append(locks, h.active(rec, uid, false))
	}
	for _, q := range h.reg.Waiting(name) {
		locks = append(locks, h.queued(name, shown(q), q, false))
	}
	if len(locks) > 0 {
		one.Embedded = &struct {
			Locks []lock `json:"locks"`
		}{locks}
	}
	h.hal(w, r, one)
}

// clear frees a name and its queue, and reports whether there was anything. What was taken by other
// means than RDLM's is left.
func (h *Handler) clear(x *exchange, name string) (bool, error) {
	ctx := x.r.Context()
	waiters := h.reg.Remove(name, "")
	rec, err := store.Load(ctx, h.st, name)
	if _, ours := shownUID(rec.Owner); err != nil || !ours || h.expired(rec) {
		return waiters > 0, err
	}
	if x.done.Name == name {
		x.of(rec)
	}
	_, err = h.reg.Release(ctx, name, rec.Owner, rec.Token, "deleted by an administrator", nil)
	if errors.Is(err, fence.ErrStale) {
		err = nil
	} else if err == nil {
		h.opts.Quotas.Over(name)
	}
	return true, err
}

func (h *Handler) unlock(x *exchange) {
	w, name := x.w, x.done.Name
	switch found, err := h.clear(x, name); {
	case err != nil:
		h.failed(x, err)
	case !found:
		x.done.Err = driver.NotFound(name)
		say(w, http.StatusNotFound, "no resource (with locks) found")
	default:
		none(w)
	}
}

func (h *Handler) unlockAll(x *exchange) {
	names, err := h.locked(x.r.Context())
	for _, name := range names {
		if err == nil {
			_, err = h.clear(x, name)
		}
	}
	if err != nil {
		h.failed(x, err)
		return
	}
	none(x.w)
}
