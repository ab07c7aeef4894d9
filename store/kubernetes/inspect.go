package kubernetes

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Properties implements [store.Describer]. It returns what this engine guarantees.
func (s *Store) Properties() store.Properties {
	return store.Properties{
		Engine:      "kubernetes",
		Consistency: "linearizable: reads and conditional writes go to a quorum of the cluster's etcd",
		Fencing:     store.FencingLinearizable,
		Read:        store.ReadDurable,
		Settle:      store.SettledByRead,
		Push:        true,
		CheapWait:   true,
		OverHTTP:    true,
		Guarantee:   "survives the failure of a minority of the control plane; shared with client-go's leader election",
	}
}

// Inspect looks at the server, and tries each permission on a Lease of its own, which it deletes
// again. It takes a dozen requests.
func (s *Store) Inspect(ctx context.Context) []driver.Finding {
	found := []driver.Finding{s.inspectServer(ctx), s.inspectLimit()}
	if found[0].Status == driver.StatusFail {
		return found
	}
	found = append(found, s.inspectIdentity(ctx))
	return append(found, s.inspectLeases(ctx)...)
}

func (s *Store) inspectServer(ctx context.Context) driver.Finding {
	f := driver.Finding{What: "server", Status: driver.StatusOK}
	begin := s.clock.Now()
	body, err := s.rest.Get().AbsPath("/version").MaxRetries(0).DoRaw(ctx)
	took := s.clock.Now().Sub(begin)
	if err != nil && !refused(err) {
		f.Status, f.Detail = driver.StatusFail, s.explain("get", err).Error()
		f.Advice = "make the API server reachable from here: the detail says what is wrong"
		return f
	}
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	if err != nil || json.Unmarshal(body, &v) != nil || v.GitVersion == "" {
		v.GitVersion = "of a version that it does not tell"
	}
	f.Detail = fmt.Sprintf("Kubernetes %s, namespace %s, answered in %v", v.GitVersion, s.namespace, took.Round(time.Microsecond))
	return f
}

// inspectIdentity says who the server takes us for. Servers before 1.28, and some others, don't
// tell.
func (s *Store) inspectIdentity(ctx context.Context) driver.Finding {
	f := driver.Finding{What: "identity", Status: driver.StatusOK}
	const path, question = "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	body, err := s.rest.Post().AbsPath(path).SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").
		Body([]byte(question)).MaxRetries(0).DoRaw(ctx)
	var review struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	switch {
	case statusCode(err) == http.StatusUnauthorized:
		f.Status, f.Detail, f.Advice = driver.StatusFail, err.Error(), "renew the token or certificate, or choose another context"
	case err != nil && !refused(err):
		f.Status, f.Detail, f.Advice = driver.StatusWarn, err.Error(), "the detail says what is wrong"
	case err != nil || json.Unmarshal(body, &review) != nil || review.Status.UserInfo.Username == "":
		f.Detail = "the server doesn't tell"
	default:
		f.Detail = review.Status.UserInfo.Username
	}
	return f
}

// fewRequests is a limit on requests that a program with many leases may meet.
const fewRequests = 50

func (s *Store) inspectLimit() driver.Finding {
	f := driver.Finding{What: "client limit", Status: driver.StatusOK, Detail: "the client sends as many requests as it wants to"}
	limiter := s.rest.GetRateLimiter()
	if limiter == nil {
		return f
	}
	qps := limiter.QPS()
	f.Detail = fmt.Sprintf("the client lets %g requests a second through", qps)
	if qps < fewRequests {
		f.Status = driver.StatusWarn
		f.Advice = fmt.Sprintf("set QPS in its rest.Config to -1, or above %d: requests that queue up make renewals late", fewRequests)
	}
	return f
}

// probe is a Lease of this process's own, on which permissions are tried.
type probe struct {
	store *Store
	rec   store.Record
	found []driver.Finding
}

func (s *Store) inspectLeases(ctx context.Context) []driver.Finding {
	p := &probe{store: s, rec: store.Record{Key: "leasehold-probe-" + strings.ToLower(rand.Text())}}
	begun := s.clock.Wall()
	rec, err := s.Put(ctx, p.rec)
	p.note("permission to create", err)
	if err != nil {
		p.note("permission to list", s.tryList(ctx))
		return p.found
	}
	p.rec = rec
	p.clock(ctx, begun)
	p.conditions(ctx)
	p.note("permission to list", s.tryList(ctx))
	p.note("permission to watch", s.tryWatch(ctx, objectName(p.rec.Key)))
	p.remove(ctx)
	return p.found
}

// note adds what came of trying something.
func (p *probe) note(what string, err error) {
	f := driver.Finding{What: what, Status: driver.StatusOK, Detail: "tried, and granted"}
	if err != nil {
		f.Status, f.Detail = driver.StatusFail, err.Error()
		f.Advice = fmt.Sprintf("apply the Role that `leasehold init kubernetes` prints for namespace %s, and bind it to this account", p.store.namespace)
		if !isForbidden(err) {
			f.Advice = "the detail says what is wrong"
		}
	}
	p.found = append(p.found, f)
}

func isForbidden(err error) bool { return statusCode(err) == http.StatusForbidden }

// farOff is a difference of clocks that people will notice.
const farOff = 5 * time.Second

// clock reads the probe and compares the server's time of its creation, in whole seconds, with
// ours.
func (p *probe) clock(ctx context.Context, begun time.Time) {
	obj, err := p.store.leases.Get(ctx, objectName(p.rec.Key), metav1.GetOptions{})
	if err != nil {
		err = p.store.explain("get", err)
	}
	p.note("permission to get", err)
	if err != nil {
		return
	}
	created, ended := obj.CreationTimestamp.Time, p.store.clock.Wall()
	f := driver.Finding{What: "server clock", Status: driver.StatusOK, Detail: "within a second of this machine's"}
	switch off := max(begun.Sub(created)-time.Second, created.Sub(ended), 0); {
	case off > farOff:
		f.Status, f.Detail = driver.StatusWarn, fmt.Sprintf("%v off this machine's", off.Round(time.Second))
		f.Advice = "set the clocks: times in kubectl's output and the age of tokens rest on them, no lease does"
	case off > 0:
		f.Detail = fmt.Sprintf("%v off this machine's", off.Round(time.Second))
	}
	p.found = append(p.found, f)
}

// conditions changes the probe, and tries to change it again from the version that it had before.
func (p *probe) conditions(ctx context.Context) {
	old := p.rec
	rec, err := p.store.Put(ctx, old)
	p.note("permission to patch", err)
	if err != nil {
		return
	}
	p.rec = rec
	f := driver.Finding{What: "conditional writes", Status: driver.StatusOK, Detail: "a write from an old version was refused"}
	if _, err := p.store.Put(ctx, old); err == nil {
		f.Status, f.Detail = driver.StatusFail, "a write from an old version was carried out"
		f.Advice = "what answers is no Kubernetes API server, or something before it changes requests: leases are not safe on it"
	} else if !errors.Is(err, store.ErrConflict) {
		f.Status, f.Detail, f.Advice = driver.StatusFail, err.Error(), "the detail says what is wrong"
	}
	p.found = append(p.found, f)
}

func (s *Store) tryList(ctx context.Context) error {
	if _, err := s.leases.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return s.explain("list", err)
	}
	return nil
}

func (s *Store) tryWatch(ctx context.Context, name string) error {
	stream, err := s.watch(ctx, name, "")
	if err != nil {
		return s.explain("watch", err)
	}
	end(stream)
	return nil
}

// remove deletes the probe, even when ctx has ended meanwhile.
func (p *probe) remove(ctx context.Context) {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), p.store.clock, readLimit)
	defer cancel()
	err := p.store.Delete(ctx, p.rec.Key, p.rec.Version)
	p.note("permission to delete", err)
	if err != nil {
		f := &p.found[len(p.found)-1]
		f.Advice += fmt.Sprintf("; then delete what was left: kubectl --namespace %s delete lease %s", p.store.namespace, objectName(p.rec.Key))
	}
}
