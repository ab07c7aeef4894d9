package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/store"
)

// said is an answer of a server, about objects of a kind; "" for an answer that doesn't say.
func said(code int32, kind string, causes ...metav1.CauseType) error {
	s := metav1.Status{Status: metav1.StatusFailure, Code: code, Message: "made up"}
	if kind != "" || len(causes) > 0 {
		s.Details = &metav1.StatusDetails{Kind: kind}
		for _, c := range causes {
			s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{Type: c})
		}
	}
	return &apierrors.StatusError{ErrStatus: s}
}

// A write was certainly not made only if the server refused it, or no connection to a server that is trusted was there to send it on.
func TestWhichErrorsAreCertain(t *testing.T) {
	s := &Store{namespace: "ns"}
	gone := errors.New("given up")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for _, c := range []struct {
		err     error
		certain bool
	}{
		{said(400, ""), true},
		{said(401, ""), true},
		{said(403, "leases"), true},
		{said(404, "namespaces"), true},
		{said(413, ""), true},
		{said(422, "leases"), true},
		{said(429, ""), true},
		{said(498, ""), true},
		{&unsentError{err: context.DeadlineExceeded}, true},
		{&net.OpError{Op: "dial", Err: io.EOF}, true},
		{&tls.CertificateVerificationError{Err: errors.New("no")}, true},
		{x509.UnknownAuthorityError{}, true},
		{x509.HostnameError{Certificate: &x509.Certificate{}}, true},
		{x509.CertificateInvalidError{}, true},
		{said(200, ""), false}, // an answer that can't be understood
		{said(302, ""), false},
		{said(399, ""), false},
		{said(408, ""), false},
		{said(499, ""), false},
		{said(500, "leases"), false},
		{said(503, ""), false},
		{said(504, "leases"), false},
		{&net.OpError{Op: "read", Err: io.EOF}, false},
		{&net.OpError{Op: "write", Err: io.EOF}, false},
		{io.ErrUnexpectedEOF, false},
		{context.DeadlineExceeded, false},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if out := s.failed(t.Context(), "n", "patch", err); errors.Is(out, store.ErrUnknownOutcome) == c.certain || !errors.Is(out, c.err) {
				t.Errorf("%v: %v", err, out)
			}
			if out := s.failed(canceled, "n", "patch", err); errors.Is(out, store.ErrUnknownOutcome) == c.certain || !errors.Is(out, gone) {
				t.Errorf("%v, and given up: %v", err, out)
			}
		}
	}
}

// A name has no record only if the server says that it has no such Lease. Whatever else is missing says nothing of it.
func TestWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{said(http.StatusNotFound, "leases"), true},
		{said(http.StatusNotFound, "leases", metav1.CauseTypeFieldValueNotFound), true},
		{said(http.StatusNotFound, "leases", metav1.CauseTypeUnexpectedServerResponse), false}, // a proxy's page
		{said(http.StatusNotFound, "namespaces"), false},
		{said(http.StatusNotFound, ""), false},
		{said(http.StatusConflict, "leases"), false},
		{io.EOF, false},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if isMissing(err) != c.want {
				t.Errorf("%#v: missing %v, want %v", c.err, !c.want, c.want)
			}
			if want := statusCode(c.err) == http.StatusConflict; isConflict(err) != want {
				t.Errorf("%#v: conflict %v, want %v", c.err, !want, want)
			}
		}
	}
	if unexpected(metav1.Status{}) {
		t.Error("an answer without details is not from elsewhere")
	}
}
