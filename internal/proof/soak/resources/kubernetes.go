package resources

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencekubernetes"
)

// inKubernetes has a config map for each name.
type inKubernetes struct {
	maps typedcore.ConfigMapInterface
	http *http.Client
}

func openKubernetes(_ context.Context, kubeconfig string) (Resource, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	core, err := typedcore.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return &inKubernetes{core.ConfigMaps("default"), client}, nil
}

func object(name string) string { return "log-" + hex.EncodeToString([]byte(name)) }

// The one entry of a config map.
const entry = "log"

func (r *inKubernetes) Write(ctx context.Context, s fence.Sequencer, line string) error {
	add := func(cm *corev1.ConfigMap) error {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[entry] += line + "\n"
		return nil
	}
	_, err := fencekubernetes.Update(ctx, r.maps, s, object(s.Name), add)
	if !apierrors.IsNotFound(err) {
		return err
	}
	// It is never deleted, so whoever makes it makes no difference.
	_, err = r.maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object(s.Name)}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = fencekubernetes.Update(ctx, r.maps, s, object(s.Name), add)
	return err
}

func (r *inKubernetes) Log(ctx context.Context, name string) ([]string, error) {
	cm, err := r.maps.Get(ctx, object(name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || cm.Data[entry] == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(cm.Data[entry], "\n"), "\n"), nil
}

func (r *inKubernetes) Close() error { r.http.CloseIdleConnections(); return nil }
