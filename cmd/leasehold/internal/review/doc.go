// Package review has a Kubernetes API server say which service account a token is of (TokenReview).
package review

import "time"

// Accounts begins the names of service accounts.
const Accounts = "system:serviceaccount:"

// Options of a [Reviewer].
type Options struct {
	Audience   string // that a token has to be for
	Kubeconfig string // file; "" for KUBECONFIG, ~/.kube/config, or the pod's own account
	Context    string // of the kubeconfig; its current one by default

	Wall func() time.Time // the time of day
}

// Account is a service account, as the API server says.
type Account struct {
	Name   string // system:serviceaccount:NAMESPACE:NAME
	Groups []string
}
