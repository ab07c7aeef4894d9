package main

import (
	"context"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leasehold/leasehold/fence"
)

// requestLimit ends a request to an API server that is cut off.
const requestLimit = 2 * time.Second

// restConfig reaches a cluster through the network that the play can cut.
func restConfig(cl clusterSettings) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", cl.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if cl.Host != "" {
		config.Host = "https://" + cl.Host
	}
	config.QPS, config.Burst, config.Timeout = -1, -1, requestLimit
	return config, nil
}

func clientsOf(config *rest.Config) (*kubernetes.Clientset, *http.Client, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	clients, err := kubernetes.NewForConfigAndClient(config, client)
	return clients, client, err
}

type tokenKey struct{}

// withToken has the requests under ctx name the term in which they are sent.
func withToken(ctx context.Context, token fence.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// agent begins the User-Agent of a controller. The pod and the token follow, for the audit log of
// the API server.
const agent = "multicluster/"

// signed names the pod, and the token of the term, in each request.
type signed struct {
	next http.RoundTripper
	pod  string
}

// RoundTrip implements [http.RoundTripper].
func (s signed) RoundTrip(req *http.Request) (*http.Response, error) {
	token, _ := req.Context().Value(tokenKey{}).(fence.Token)
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", agent+s.pod+" token/"+token.String())
	return s.next.RoundTrip(req)
}
