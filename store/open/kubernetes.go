//go:build !lite

package open

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/kubernetes"
)

// The parameters of a namespace's URL. What isn't there comes from where kubectl takes it:
// KUBECONFIG, ~/.kube/config, or the service account of the pod.
const (
	paramContext    = "context"    // of the kubeconfig; its current one otherwise
	paramKubeconfig = "kubeconfig" // a file
	paramOwner      = "owner"      // of the Leases that are made: APIVERSION/KIND/NAME/UID
)

var kubernetesScheme = Scheme{
	Name: "k8s", Form: "k8s://NAMESPACE", Doc: "Lease objects of Kubernetes",
	parse: parseKubernetesRest, open: openKubernetes,
}

// kubernetesURL is what a namespace's URL says.
type kubernetesURL struct {
	namespace string // "" for that of the context
	owner     *metav1.OwnerReference
	server
}

// KubernetesNamespace returns the namespace that the URL names. It returns otherwise when the URL
// leaves the namespace to the context. It does no I/O.
func (u URL) KubernetesNamespace(otherwise string) (string, error) {
	if u.Scheme.Name != kubernetesScheme.Name {
		return "", fmt.Errorf("%s: is not a Kubernetes URL: want k8s://NAMESPACE", Redact(u.String()))
	}
	k, err := parseKubernetes(u.Rest)
	if err == nil && k.namespace != "" {
		otherwise = k.namespace
	}
	return otherwise, err
}

// parseKubernetesRest makes the path of the kubeconfig complete.
func parseKubernetesRest(rest string) (string, error) {
	u, err := parseKubernetes(rest)
	if err != nil {
		return "", err
	}
	query := url.Values{}
	for name, value := range u.params {
		if name == paramKubeconfig {
			if value, err = filepath.Abs(value); err != nil {
				return "", err
			}
		}
		query.Set(name, value)
	}
	if len(query) == 0 {
		return "//" + u.namespace, nil
	}
	return "//" + u.namespace + "?" + query.Encode(), nil
}

func parseKubernetes(rest string) (kubernetesURL, error) {
	name, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return kubernetesURL{}, errors.New("want k8s://NAMESPACE, or k8s:// for the namespace of the context")
	}
	name, query, _ := strings.Cut(name, "?")
	u := kubernetesURL{namespace: strings.TrimSuffix(name, "/"), server: server{params: map[string]string{}}}
	if wrong := validation.IsDNS1123Label(u.namespace); u.namespace != "" && len(wrong) > 0 {
		return u, fmt.Errorf("namespace %q: want the name of one: %s; the address of the cluster is in the kubeconfig", u.namespace, wrong[0])
	}
	if err := u.readParams(query, []string{paramContext, paramKubeconfig, paramOwner}); err != nil {
		return u, err
	}
	if text := u.params[paramOwner]; text != "" {
		parts := strings.Split(text, "/")
		n := len(parts)
		if n < 4 || n > 5 || slices.Contains(parts, "") {
			return u, fmt.Errorf("parameter %s=%q: want APIVERSION/KIND/NAME/UID, such as apps/v1/Deployment/web/UID", paramOwner, text)
		}
		u.owner = &metav1.OwnerReference{
			APIVersion: strings.Join(parts[:n-3], "/"), Kind: parts[n-3], Name: parts[n-2], UID: types.UID(parts[n-1]),
		}
	}
	return u, nil
}

// clientConfig reads the kubeconfig, or what the pod has.
func (u kubernetesURL) clientConfig() (clientcmd.ClientConfig, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = u.params[paramKubeconfig]
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: u.params[paramContext]})
	raw, err := config.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig can't be read: %w", err)
	}
	if name := u.params[paramContext]; name != "" && raw.Contexts[name] == nil {
		return nil, fmt.Errorf("parameter %s=%q: the kubeconfig has no such context: it has %s", paramContext, name, strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
	}
	return config, nil
}

// kubernetesTimeout bounds the first look at the server.
const kubernetesTimeout = 10 * time.Second

func openKubernetes(ctx context.Context, rest string, opts Options) (store.Store, error) {
	u, err := parseKubernetes(rest)
	if err != nil {
		return nil, err
	}
	client, hc, namespace, err := u.client(opts.log())
	if err != nil {
		return nil, err
	}
	st, err := kubernetes.New(client, kubernetes.Options{Namespace: namespace, Owner: u.owner})
	if err != nil {
		return nil, err
	}
	s := &kubernetesStore{st, hc}
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), kubernetesTimeout)
	defer cancel()
	if err := st.Ping(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// silence keeps client-go from writing to standard error: what goes wrong is in the errors that it
// returns.
var silence = sync.OnceFunc(func() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
})

// kubernetesStore closes its connections with it.
type kubernetesStore struct {
	*kubernetes.Store
	http *http.Client
}

func (s *kubernetesStore) Close() error {
	err := s.Store.Close()
	s.http.CloseIdleConnections()
	return err
}
