package stores

import "fmt"

// KubernetesNamespace returns the namespace that the URL names, or otherwise when it leaves that to the context, without I/O.
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
