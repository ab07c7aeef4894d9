//go:build !lite

package open

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
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

var kubernetesScheme = register(Scheme{
	Name: "k8s", Form: "k8s://NAMESPACE", Doc: "Lease objects of Kubernetes",
	parse: parseKubernetesRest, open: openKubernetes,
	called: "Kubernetes", tag: "lite", alike: []string{"kubernetes", "kube"},
})

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

// client returns a client, its connections, and the namespace.
func (u kubernetesURL) client(log *slog.Logger) (*coordination.CoordinationV1Client, *http.Client, string, error) {
	cfg, hc, namespace, err := u.dial(log)
	if err != nil {
		return nil, nil, "", err
	}
	client, err := coordination.NewForConfigAndClient(cfg, hc)
	return client, hc, namespace, err
}

// DialCluster returns what clients of a cluster are made of. The settings are those of the named
// context in the kubeconfig, or of the current context if context is "". If kubeconfig is "",
// DialCluster looks where kubectl finds one, or uses the pod's account. It does no network I/O.
func DialCluster(kubeconfig, context string) (*rest.Config, *http.Client, error) {
	u := kubernetesURL{server: server{params: map[string]string{}}}
	for name, value := range map[string]string{paramKubeconfig: kubeconfig, paramContext: context} {
		if value != "" {
			u.params[name] = value
		}
	}
	cfg, hc, _, err := u.dial(slog.New(slog.DiscardHandler))
	return cfg, hc, err
}

// DialCluster returns what clients of the URL's cluster are made of: clients with connections of
// their own, which share none with the store. It returns an error if the URL is not one of a
// cluster. It does no network I/O.
func (u URL) DialCluster() (*rest.Config, *http.Client, error) {
	if u.Scheme.Name != kubernetesScheme.Name {
		return nil, nil, fmt.Errorf("%s: is not a Kubernetes URL: want k8s://NAMESPACE", Redact(u.String()))
	}
	k, err := parseKubernetes(u.Rest)
	if err != nil {
		return nil, nil, err
	}
	cfg, hc, _, err := k.dial(slog.New(slog.DiscardHandler))
	return cfg, hc, err
}

// dial returns how to reach the cluster, and the namespace. A token or a certificate that was
// replaced counts for the next request, and the kubeconfig, its files and the pod's token are read
// again when the server says 401.
func (u kubernetesURL) dial(log *slog.Logger) (*rest.Config, *http.Client, string, error) {
	silence()
	cfg, namespace, err := u.read()
	if err != nil {
		return nil, nil, "", err
	}
	paths := append(u.kubeconfigs(), present(cfg.CAFile, cfg.CertFile, cfg.KeyFile, cfg.BearerTokenFile)...)
	file, err := senders(log, paths, func() (*sender, error) {
		cfg, _, err := u.read()
		if err != nil {
			return nil, err
		}
		t, err := kubernetesTransport(cfg)
		if err != nil {
			return nil, fmt.Errorf("the kubeconfig: %w", err)
		}
		return &sender{RoundTripper: t}, nil
	})
	if err != nil {
		return nil, nil, "", err
	}
	return cfg, &http.Client{Transport: &rotating{file: file, refusal: []int{http.StatusUnauthorized}}, Timeout: cfg.Timeout}, namespace, nil
}

// kubernetesTransport returns a transport with what is in the files now. client-go by itself reads
// a token again after a minute, and a certificate's authority after five.
func kubernetesTransport(cfg *rest.Config) (http.RoundTripper, error) {
	cfg = rest.CopyConfig(cfg)
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, err
	}
	cfg.CAFile, cfg.CertFile, cfg.KeyFile = "", "", ""
	if file := cfg.BearerTokenFile; file != "" {
		token, err := readSecret("the token's file", file)
		if err != nil {
			return nil, err
		}
		cfg.BearerToken, cfg.BearerTokenFile = token, ""
	}
	return kubernetes.TransportFor(cfg)
}

// kubeconfigs are the files that the configuration is read from, as far as they are named.
func (u kubernetesURL) kubeconfigs() []string {
	if file := u.params[paramKubeconfig]; file != "" {
		return []string{file}
	}
	return clientcmd.NewDefaultClientConfigLoadingRules().Precedence
}

// podToken is where client-go looks for the token of a pod's account.
const podToken = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // a path, and no token

// read returns what the kubeconfig, or the pod, says now.
func (u kubernetesURL) read() (*rest.Config, string, error) {
	config, err := u.clientConfig()
	if err != nil {
		return nil, "", err
	}
	cfg, err := config.ClientConfig()
	if file := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); clientcmd.IsEmptyConfig(err) && file != "" && u.params[paramKubeconfig] == "" {
		return nil, "", fmt.Errorf("KUBECONFIG=%s: no cluster in it, or no such file: is the path right?", file)
	}
	if clientcmd.IsEmptyConfig(err) && os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return nil, "", fmt.Errorf("this pod has no service account's token: %s is missing: set automountServiceAccountToken: true in the pod's spec, or name a kubeconfig by ?%s=FILE in the URL: %w", podToken, paramKubeconfig, err)
	}
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", fmt.Errorf("no cluster is configured: set KUBECONFIG, add ?%s=FILE to the URL, or run in a pod with a service account (%s is missing or empty)", paramKubeconfig, filepath.Join("~", ".kube", "config"))
	}
	if err != nil {
		return nil, "", fmt.Errorf("the kubeconfig: %w", err)
	}
	namespace := u.namespace
	if namespace == "" {
		if namespace, _, err = config.Namespace(); err != nil {
			return nil, "", fmt.Errorf("the kubeconfig: %w", err)
		}
	}
	// The server limits what each account asks of it.
	cfg.QPS, cfg.UserAgent, cfg.WarningHandler = -1, "leasehold", rest.NoWarnings{}
	return cfg, namespace, nil
}
