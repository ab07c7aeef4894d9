//go:build !lite

package podlabel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store/open"
)

// pods asks the API server for the pods that may have the label. It is used by one goroutine.
type pods struct {
	label Label
	rest  *rest.RESTClient
	maybe bool // the label may be on this pod, by this process
	begun bool // what an earlier process left is gone
}

// mark is what the annotation says.
type mark struct {
	Election string      `json:"election"`
	Token    fence.Token `json:"token"`
	Ended    bool        `json:"ended,omitempty"`
}

// check says what is wrong with a label's key and value.
func check(key, value string) error {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("key %q: %s", key, wrong[0])
	}
	if wrong := validation.IsQualifiedName(key + suffix); len(wrong) > 0 {
		return fmt.Errorf("key %q: want a name of at most %d bytes, since an annotation %s%s is kept beside it", key, validation.LabelValueMaxLength-len(suffix), key, suffix)
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return fmt.Errorf("value %q: %s", value, wrong[0])
	}
	return nil
}

// dial does no network I/O.
func dial(l Label) (pods, error) {
	config, hc, err := open.DialCluster("", "")
	if err != nil {
		return pods{}, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(config, hc)
	return pods{label: l, rest: client}, err
}

// put takes the label off the pods that have it from an earlier term of the election, and then puts
// it on this pod.
func (p *pods) put(ctx context.Context, t Term) error {
	own, err := p.clear(ctx, t)
	if err == nil && own == nil {
		own, err = p.own(ctx)
	}
	if err != nil {
		return err
	}
	m, ok := p.markOf(own)
	value, on := own.Labels[p.label.Key]
	switch {
	case on && !ok:
		return fmt.Errorf("pod %s has %s=%s, and no election has set it: take it out of the pod's template", own.Name, p.label.Key, value)
	case on && m.Election != p.label.Election:
		return fmt.Errorf("pod %s has it from the election %s: give each election of a pod a key of its own", own.Name, m.Election)
	case on && m.Token > t.Token:
		return errLater
	case on && value == p.label.Value && m == mark{Election: p.label.Election, Token: t.Token}:
		p.maybe = true
		return nil
	}
	if err := t.Check(); err != nil {
		return err
	}
	p.maybe, p.begun = true, true
	return p.patch(ctx, own.Name, &p.label.Value, mark{Election: p.label.Election, Token: t.Token}, own)
}

// clear takes the label off the other pods that have it from an earlier term of the election. It
// returns this pod if it has the label, and errLater if a later term has set one.
func (p *pods) clear(ctx context.Context, t Term) (own *metav1.PartialObjectMetadata, err error) {
	labelled, err := p.list(ctx, "labelSelector", p.label.Key+"="+p.label.Value)
	if err != nil {
		return nil, err
	}
	for i := range labelled {
		pod := &labelled[i]
		m, ok := p.markOf(pod)
		switch {
		case pod.Name == p.label.Pod:
			own = pod
			continue
		case !ok || m.Election != p.label.Election:
			continue
		case m.Token > t.Token:
			return nil, errors.Join(errLater, p.remove(ctx))
		}
		m.Ended = true
		if err := p.patch(ctx, pod.Name, nil, m, pod); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return own, nil
}

// remove takes the label off this pod if this process, or an earlier one in this pod, has put it
// on.
func (p *pods) remove(ctx context.Context) error {
	if p.begun && !p.maybe {
		return nil
	}
	own, err := p.own(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	m, ok := p.markOf(own)
	_, on := own.Labels[p.label.Key]
	if p.maybe && !on || on && ok && m.Election == p.label.Election {
		// A request to put it on may still be on its way. It was made for the version that this
		// write replaces.
		m.Election, m.Ended = p.label.Election, true
		if err := p.patch(ctx, own.Name, nil, m, own); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	p.maybe, p.begun = false, true
	return nil
}

// markOf returns what the annotation of a pod says, if anything.
func (p *pods) markOf(pod *metav1.PartialObjectMetadata) (m mark, ok bool) {
	text := pod.Annotations[p.label.Key+suffix]
	return m, text != "" && json.Unmarshal([]byte(text), &m) == nil
}

// own returns this pod.
func (p *pods) own(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	found, err := p.list(ctx, "fieldSelector", "metadata.name="+p.label.Pod)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("namespace %s has no pod %s: set %s and %s by the downward API: %w", p.label.Namespace, p.label.Pod, EnvPod, EnvNamespace,
			apierrors.NewNotFound(corev1.Resource("pods"), p.label.Pod))
	}
	return &found[0], nil
}

// list returns the metadata of pods: a read that a quorum of the cluster's etcd answers.
func (p *pods) list(ctx context.Context, param, selector string) ([]metav1.PartialObjectMetadata, error) {
	body, err := p.rest.Get().Namespace(p.label.Namespace).Resource("pods").Param(param, selector).MaxRetries(0).
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").DoRaw(ctx)
	if err != nil {
		return nil, p.explain("list", "pods", err)
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return list.Items, nil
}

// patch changes the label and the annotation of a pod, if it is the version that was seen. It
// patches the pod's status: that may change labels, and the right to it none of the pod's spec.
func (p *pods) patch(ctx context.Context, name string, value *string, m mark, seen *metav1.PartialObjectMetadata) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": seen.UID, "resourceVersion": seen.ResourceVersion,
		"labels": map[string]*string{p.label.Key: value}, "annotations": map[string]string{p.label.Key + suffix: string(text)},
	}})
	if err != nil {
		return err
	}
	err = p.rest.Patch(types.MergePatchType).Namespace(p.label.Namespace).Resource("pods").Name(name).SubResource("status").
		Param("fieldManager", "leasehold").MaxRetries(0).Body(body).Do(ctx).Error()
	return p.explain("patch", "pods/status", err)
}

// explain names the right that is missing.
func (p *pods) explain(verb, resource string, err error) error {
	var unsent *url.Error
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("may not %s %s in namespace %s: the Role of the pod's account needs the verb %s on %s: `leasehold init kubernetes --print=leasehold-elect` has it: %w",
			verb, resource, p.label.Namespace, verb, resource, err)
	case errors.As(err, &unsent):
		return fmt.Errorf("%s %s: the API server doesn't answer: %w", verb, resource, unsent.Err)
	}
	return fmt.Errorf("%s %s: %w", verb, resource, err)
}
