package gate

import (
	"net/http"
	"strings"
)

// kubernetesPath is what a path means to a Kubernetes API server.
type kubernetesPath struct {
	group, resource, subresource string
	legacyProxy                  bool // /api/v1/proxy/…, of old
}

// parseKubernetes reads /api/VERSION/… or /apis/GROUP/VERSION/…, each with namespaces/NAMESPACE or
// without. Any other path is the zero one.
func parseKubernetes(path string) (k kubernetesPath) {
	s := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(s) > 2 && s[0] == "api":
		s = s[2:]
	case len(s) > 3 && s[0] == "apis":
		k.group, s = s[1], s[3:]
	default:
		return k
	}
	if s[0] == "proxy" {
		k.legacyProxy = true
		return k
	}
	if s[0] == "watch" {
		s = s[1:]
	}
	if len(s) > 2 && s[0] == "namespaces" && s[2] != "status" && s[2] != "finalize" {
		s = s[2:]
	}
	if len(s) > 0 {
		k.resource = s[0]
	}
	if len(s) > 2 {
		k.subresource = s[2]
	}
	return k
}

// connects reports whether a request does something in a pod, or behind the API server, whatever
// its method.
func (k kubernetesPath) connects() bool {
	switch k.subresource {
	case "exec", "attach", "portforward", "proxy":
		return true
	}
	return k.legacyProxy
}

// reviews reports whether what is created is a question, which isn't kept. Other groups may keep
// what they call a review.
func (k kubernetesPath) reviews() bool {
	return (k.group == "authorization.k8s.io" || k.group == "authentication.k8s.io") && k.subresource == "" &&
		strings.HasSuffix(k.resource, "reviews")
}

// kubernetesStatus are the fields by which clients of a Kubernetes API server know a Status.
type kubernetesStatus struct {
	Kind       string             `json:"kind"`
	APIVersion string             `json:"apiVersion"`
	Metadata   struct{}           `json:"metadata"`
	Status     string             `json:"status"`
	Reason     string             `json:"reason,omitempty"`
	Details    *kubernetesDetails `json:"details,omitempty"`
	Code       int                `json:"code"`
}

type kubernetesDetails struct {
	RetryAfterSeconds int64 `json:"retryAfterSeconds"`
}

func newKubernetesStatus(code int, retrySeconds int64) *kubernetesStatus {
	s := &kubernetesStatus{Kind: "Status", APIVersion: "v1", Status: "Failure", Code: code}
	switch code {
	case http.StatusServiceUnavailable:
		s.Reason = "ServiceUnavailable"
	case http.StatusRequestTimeout:
		s.Reason = "Timeout"
	}
	if retrySeconds > 0 {
		s.Details = &kubernetesDetails{retrySeconds}
	}
	return s
}
