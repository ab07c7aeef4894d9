//go:build !lite

package kubevents

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/open"
)

// reason is that of the Events of client-go's elector, so that what looks for those finds these.
const reason = "LeaderElection"

// component is what the Events are from.
const component = "leasehold"

// leases is what a store in a cluster has.
type leases interface {
	Lease(ctx context.Context, key string) (*coordinationv1.Lease, error)
}

// events writes to one cluster. It is used by one goroutine.
type events struct {
	leases leases
	rest   *rest.RESTClient
	host   string
	seen   map[string]corev1.ObjectReference // the Leases that a term has begun on, by their keys
}

// dial returns nil if the store is in no cluster.
func dial(url open.URL, st store.Store) (write func(context.Context, note) error, hangUp func(), err error) {
	in, ok := st.(leases)
	if !ok {
		return nil, nil, nil
	}
	config, hc, err := url.DialCluster()
	if err != nil {
		return nil, nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(config, hc)
	if err != nil {
		return nil, nil, err
	}
	e := &events{leases: in, rest: client, seen: map[string]corev1.ObjectReference{}}
	e.host, _ = os.Hostname()
	return e.write, hc.CloseIdleConnections, nil
}

func (e *events) write(ctx context.Context, n note) error {
	about, err := e.subject(ctx, n)
	if err != nil {
		return err
	}
	now := clock.System().Wall()
	body, err := json.Marshal(corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace, Name: eventName(about.Name, now.UnixNano())},
		Type:       corev1.EventTypeNormal, Reason: reason, Message: n.text, Count: 1, InvolvedObject: about,
		Source:              corev1.EventSource{Component: component, Host: e.host},
		ReportingController: component, ReportingInstance: e.host,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now),
	})
	if err != nil {
		return err
	}
	err = e.rest.Post().Namespace(about.Namespace).Resource("events").Param("fieldManager", component).MaxRetries(0).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the account's Role needs the verb create on events in namespace %s: `leasehold init kubernetes --print=leasehold-elect` has it: %w", about.Namespace, err)
	}
	return err
}

// subject returns the Lease that the note is about, as kubectl describe looks for Events.
func (e *events) subject(ctx context.Context, n note) (corev1.ObjectReference, error) {
	if about, ok := e.seen[n.name]; ok && n.ends {
		return about, nil
	}
	lease, err := e.leases.Lease(ctx, n.name)
	if err != nil {
		return corev1.ObjectReference{}, err
	}
	e.seen[n.name] = corev1.ObjectReference{
		APIVersion: lease.APIVersion, Kind: lease.Kind, Namespace: lease.Namespace, Name: lease.Name, UID: lease.UID, ResourceVersion: lease.ResourceVersion,
	}
	return e.seen[n.name], nil
}

// mostName is how many bytes of the Lease's name are in that of the Event, which may have 253.
const mostName = 230

// eventName is made as by client-go.
func eventName(lease string, now int64) string {
	if len(lease) > mostName {
		lease = strings.TrimRight(lease[:mostName], "-.")
	}
	return fmt.Sprintf("%s.%x", lease, now)
}
