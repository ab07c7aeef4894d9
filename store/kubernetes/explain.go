package kubernetes

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unsentError is why a request was not sent.
type unsentError struct {
	err error
	qps float32
}

func (e *unsentError) Error() string {
	return fmt.Sprintf("not sent: the client's own limit lets %g requests a second through (raise QPS in its rest.Config, or set it to -1): %v", e.qps, e.err)
}

func (e *unsentError) Unwrap() error { return e.err }

// unsent reports whether it is certain that the one request that was tried never reached a server.
// The standard library's transport sends nothing before it has a connection and trusts its
// certificate, and never changes to another connection once it has begun to send.
func unsent(err error) bool {
	var own *unsentError
	var op *net.OpError
	return errors.As(err, &own) || errors.As(err, &op) && op.Op == "dial" || distrusted(err)
}

// distrusted reports whether the server's certificate was not accepted.
func distrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &name) || errors.As(err, &invalid)
}

// statusCode returns the HTTP status of an answer, or 0.
func statusCode(err error) int {
	return int(status(err).Code)
}

func status(err error) metav1.Status {
	var s apierrors.APIStatus
	if errors.As(err, &s) {
		return s.Status()
	}
	return metav1.Status{}
}

// isMissing reports whether the server said that there is no such Lease, and not that it has no
// Leases or no such namespace.
func isMissing(err error) bool {
	s := status(err)
	return s.Code == http.StatusNotFound && s.Details != nil && s.Details.Kind == "leases" && !unexpected(s)
}

// unexpected reports whether the answer came from something else than the code that serves Leases.
func unexpected(s metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// isConflict reports whether the server said that the object has another version, or that it
// exists.
func isConflict(err error) bool { return statusCode(err) == http.StatusConflict }

// explain says what to do about an error.
func (s *Store) explain(verb string, err error) error {
	st := status(err)
	var op *net.OpError
	var own *unsentError
	switch {
	case errors.As(err, &own):
		return err
	case distrusted(err):
		return fmt.Errorf("the API server's certificate is not trusted: give the CA that signed it (certificate-authority in the kubeconfig, TLSClientConfig.CAFile in a rest.Config), and reach the server by a name that is in the certificate: %w", err)
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("the API server can't be reached: does it run, and is its address (server in the kubeconfig, Host in a rest.Config) right? %w", err)
	case st.Code == http.StatusUnauthorized:
		return fmt.Errorf("the API server doesn't accept the credentials: renew the token or certificate, or choose another context: %w", err)
	case st.Code == http.StatusForbidden && apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return fmt.Errorf("namespace %s is being deleted: choose another one: %w", s.namespace, err)
	case st.Code == http.StatusForbidden:
		return fmt.Errorf("this account may not %[1]s Leases in namespace %[2]s, or there is no such namespace, which the server says to nobody without rights in it: see that kubectl get namespace %[2]s finds it, and give the account the Role that `leasehold init kubernetes` prints: %[3]w", verb, s.namespace, err)
	case st.Code == http.StatusNotFound && st.Details != nil && st.Details.Kind == "namespaces":
		return s.noNamespace(err)
	case st.Code == http.StatusNotFound:
		return fmt.Errorf("what answers at that address serves no coordination.k8s.io/v1 Leases: is it a Kubernetes API server? %w", err)
	case st.Code == http.StatusTooManyRequests:
		return fmt.Errorf("the API server has too much to do for this account: see its priority levels and flow schemas: %w", err)
	}
	return fmt.Errorf("%s Leases in namespace %s: %w", verb, s.namespace, err)
}

func (s *Store) noNamespace(err error) error {
	return fmt.Errorf("namespace %s does not exist: make it (kubectl create namespace %s) or choose another one: %w", s.namespace, s.namespace, err)
}
