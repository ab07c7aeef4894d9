package servers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var kubernetes = register(&engine{
	name: "kubernetes", title: "the Kubernetes API server", ports: 1, options: "tls settings", secure: true,
	find:    installed("kubernetes", "kube-apiserver"),
	plan:    planKubernetes,
	ready:   kubernetesReady,
	adopt:   adoptKubernetes,
	store:   func(s *Server) Store { return Store{URL: "k8s://default?kubeconfig=" + s.Extra["kubeconfig"]} },
	adoptBy: func(s *Server) string { return s.Extra["kubeconfig"] },
	client:  kubernetesClient{},
})

// Kubernetes starts kube-apiserver on an etcd of its own: no controllers, no nodes.
// Extra["kubeconfig"] is the file of an administrator, whose token is Extra["token"];
// Extra["user-kubeconfig"] and Extra["user-token"] are those of the user leasehold, who may do
// nothing until a role is bound, and who may also show Extra["user-cert"] and Extra["user-key"].
// Extra["etcd"] is the address of its etcd, which is not killed or paused with it.
func Kubernetes(t testing.TB, opts ...Option) *Server { t.Helper(); return start(t, kubernetes, opts) }

// The tokens are good for a server on the loopback interface that exists for a test.
const adminToken, userToken = "leasehold-admin", "leasehold-user"

func planKubernetes(ctx context.Context, s *Server, program string) (command, error) {
	storage, err := launch(ctx, etcd, s.Dir, config{})
	if err != nil {
		return command{}, err
	}
	s.parts = append(s.parts, storage)
	s.URL = "https://" + s.Addr
	s.Extra["etcd"], s.Extra["token"], s.Extra["user-token"] = storage.Addr, adminToken, userToken
	// A certificate would beat the token that a client has.
	s.Extra["user-cert"], s.Extra["user-key"] = s.Extra["cert"], s.Extra["key"]
	delete(s.Extra, "cert")
	delete(s.Extra, "key")
	tokens := filepath.Join(s.Dir, "tokens.csv")
	text := adminToken + `,admin,1,"system:masters"` + "\n" + userToken + ",leasehold,2\n"
	if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
		return command{}, err
	}
	for name, token := range map[string]string{"kubeconfig": adminToken, "user-kubeconfig": userToken} {
		if err := s.writeKubeconfig(name, token); err != nil {
			return command{}, err
		}
	}
	s.Env["KUBECONFIG"] = s.Extra["kubeconfig"]
	flags := map[string]string{
		"etcd-servers": storage.URL, "bind-address": "127.0.0.1", "advertise-address": "127.0.0.1", "secure-port": s.ports[0].String(),
		"tls-cert-file": s.Extra["server-cert"], "tls-private-key-file": s.Extra["server-key"], "cert-dir": s.Dir,
		"client-ca-file": s.Extra["ca"], "token-auth-file": tokens, "authorization-mode": "RBAC",
		"service-account-key-file": s.Extra["server-cert"], "service-account-signing-key-file": s.Extra["server-key"],
		"service-account-issuer": s.URL, "service-cluster-ip-range": "10.0.0.0/24", "endpoint-reconciler-type": "none",
		// What needs controllers that are not here.
		"disable-admission-plugins": "ServiceAccount,ResourceQuota,LimitRanger,PersistentVolumeClaimResize,StorageObjectInUseProtection,DefaultStorageClass,RuntimeClass",
		"profiling":                 "false", "v": "0",
	}
	return command{args: append([]string{program}, s.config.flags(flags)...)}, nil
}

// writeKubeconfig writes what kubectl and client-go read. JSON is YAML.
func (s *Server) writeKubeconfig(name, token string) error {
	ca, err := os.ReadFile(s.Extra["ca"])
	if err != nil {
		return err
	}
	type object map[string]any
	text, err := json.MarshalIndent(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "leasehold",
		"clusters": []object{{"name": "leasehold", "cluster": object{
			"server": s.URL, "certificate-authority-data": base64.StdEncoding.EncodeToString(ca),
		}}},
		"users":    []object{{"name": "leasehold", "user": object{"token": token}}},
		"contexts": []object{{"name": "leasehold", "context": object{"cluster": "leasehold", "user": "leasehold", "namespace": "default"}}},
	}, "", "  ")
	if err != nil {
		return err
	}
	s.Extra[name] = filepath.Join(s.Dir, name+".json")
	return os.WriteFile(s.Extra[name], append(text, '\n'), 0o600)
}

// kubernetesReady wants the server ready, and the namespace that things go into by default, which
// it makes after that.
func kubernetesReady(ctx context.Context, s *Server) error {
	if s.Extra["ca"] == "" { // somebody else's
		return dials(ctx, s.Addr)
	}
	token := []string{"Authorization", "Bearer " + s.Extra["token"]}
	if err := wants(200, "ok")(s.get(ctx, s.URL+"/readyz", token...)); err != nil {
		return err
	}
	return wants(200, `"Active"`)(s.get(ctx, s.URL+"/api/v1/namespaces/default", token...))
}

// adoptKubernetes takes the path of an administrator's kubeconfig. The user leasehold's is beside
// it if its name begins with user-.
func adoptKubernetes(s *Server, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("want the path of a kubeconfig: %w", err)
	}
	found := regexp.MustCompile(`"?server"?: *"?(https?://([^/"\s]+))`).FindSubmatch(text)
	if found == nil {
		return fmt.Errorf("the kubeconfig names no server")
	}
	s.URL, s.Addr = string(found[1]), string(found[2])
	s.Extra["kubeconfig"], s.Env["KUBECONFIG"] = file, file
	s.Extra["token"] = tokenIn(text)
	file = filepath.Join(filepath.Dir(file), "user-"+filepath.Base(file))
	if text, err = os.ReadFile(file); err == nil {
		s.Extra["user-kubeconfig"], s.Extra["user-token"] = file, tokenIn(text)
	}
	return nil
}

// tokenIn returns the token in a kubeconfig; "" if it has none.
func tokenIn(text []byte) string {
	if found := regexp.MustCompile(`"?token"?: *"?([^"\s]+)`).FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return ""
}

// kubernetesClient is the plainest client.
type kubernetesClient struct{}

func (kubernetesClient) put(ctx context.Context, s *Server, value string) error {
	url := s.URL + "/api/v1/namespaces/default/configmaps"
	body := fmt.Sprintf(`{"metadata":{"name":"key"},"data":{"value":%q}}`, value)
	header := []string{"Authorization", "Bearer " + s.Extra["token"], "Content-Type", "application/json"}
	status, text, err := s.ask(ctx, "POST", url, body, header...)
	if status == 409 {
		return wants(200, value)(s.ask(ctx, "PUT", url+"/key", body, header...))
	}
	return wants(201, value)(status, text, err)
}

func (kubernetesClient) get(ctx context.Context, s *Server) (string, error) {
	status, text, err := s.get(ctx, s.URL+"/api/v1/namespaces/default/configmaps/key", "Authorization", "Bearer "+s.Extra["token"])
	var answer struct{ Data struct{ Value string } }
	if err := wants(200, "value")(status, text, err); err != nil {
		return "", err
	}
	return answer.Data.Value, json.Unmarshal([]byte(text), &answer)
}
