package open

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store/dynamodb"
)

// asAdmin sends requests with a bearer token or another header.
type asAdmin struct {
	t             *testing.T
	client        *http.Client
	header, value string
}

// try returns the status of the answer, and reads the answer into result if that isn't nil.
func (a asAdmin) try(method, url string, body, result any) int {
	a.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		a.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(a.t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(a.header, a.value)
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err == nil && result != nil && resp.StatusCode/100 == 2 {
		err = json.Unmarshal(text, result)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode
}

func (a asAdmin) must(method, url string, body, result any) {
	a.t.Helper()
	if status := a.try(method, url, body, result); status/100 != 2 {
		a.t.Fatalf("%s %s: %d", method, url, status)
	}
}

// TestFinding_L5_TokensOfConsul: the token that the file had is deleted.
func TestFinding_L5_TokensOfConsul(t *testing.T) {
	const manager = "8e1a2f5c-6c1f-4c53-9d2e-0123456789ab"
	withoutConsul(t)
	srv := servers.Consul(t, servers.Password(manager))
	admin := asAdmin{t, http.DefaultClient, "X-Consul-Token", manager}
	defer http.DefaultClient.CloseIdleConnections()
	type token struct{ AccessorID, SecretID string }
	var before, after token
	for _, made := range []*token{&before, &after} {
		admin.must("PUT", srv.URL+"/v1/acl/token", map[string]any{"Policies": []any{map[string]any{"Name": "global-management"}}}, made)
	}
	file := secretIn(t, before.SecretID)
	rotation{url: "consul://" + srv.Addr + "?token_file=" + file, files: map[string]string{file: after.SecretID}, revoke: func() {
		admin.must("DELETE", srv.URL+"/v1/acl/token/"+before.AccessorID, nil, nil)
	}}.under(t)
}

// TestFinding_L5_CertificatesOfZooKeeper has a TLS end in front of the server, which asks for a certificate of the authority of the day.
func TestFinding_L5_CertificatesOfZooKeeper(t *testing.T) {
	srv := servers.ZooKeeper(t)
	certs := servers.Redis(t, servers.MutualTLS())
	ca, cert, key := ownFiles(t, certs)
	front := &mutualFront{target: srv.Addr}
	front.trust(t, certs)
	addr := front.listen(t)
	rotation{url: fmt.Sprintf("zk://%s?cacert=%s&cert=%s&key=%s", addr, ca, cert, key), revoke: func() {
		certs.Recertify()
		front.trust(t, certs)
		for path, from := range map[string]string{ca: "ca", cert: "cert", key: "key"} {
			text, err := os.ReadFile(certs.Extra[from])
			if err != nil {
				t.Fatal(err)
			}
			replaceFile(t, path, string(text))
		}
	}}.under(t)
}

// mutualFront is a TLS end in front of a server.
type mutualFront struct {
	target string

	mu     sync.Mutex
	config *tls.Config
	conns  []net.Conn
}

// trust has it use the certificates that the files have now, and ends all connections.
func (f *mutualFront) trust(t *testing.T, certs *servers.Server) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certs.Extra["server-cert"], certs.Extra["server-key"])
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(certs.Extra["ca"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.config = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.conns = nil
}

func (f *mutualFront) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			client := tls.Server(conn, f.config)
			f.conns = append(f.conns, conn)
			f.mu.Unlock()
			running.Go(func() { f.serve(client) })
		}
	})
	t.Cleanup(func() { // before the store's, which ends its connections by itself
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

func (f *mutualFront) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		return
	}
	defer server.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(server, client)
	_ = server.Close()
	back.Wait()
}

// TestFinding_L5_CredentialsOfAWS has an end in front of DynamoDB Local, which takes all, that refuses what AWS has no more.
func TestFinding_L5_CredentialsOfAWS(t *testing.T) {
	srv := servers.DynamoDB(t)
	target, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	valid := "AKIABEFORE"
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := regexp.MustCompile(`Credential=(\w+)/`).FindStringSubmatch(r.Header.Get("Authorization"))
		mu.Lock()
		good := key != nil && key[1] == valid
		mu.Unlock()
		if good {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"The security token included in the request is invalid."}`)
	}))
	t.Cleanup(front.Close)
	setAWS(t, map[string]string{"AWS_REGION": "eu-west-1"})
	const credentials = "[default]\naws_access_key_id = AKIA%[1]s\naws_secret_access_key = secret%[1]s\n"
	file := secretIn(t, fmt.Sprintf(credentials, "BEFORE"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	text := "dynamodb://leases?endpoint=" + front.URL
	u, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	table, err := u.DynamoDB(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if _, err := dynamodb.Create(t.Context(), table.Client, "leases"); err != nil {
		t.Fatal(err)
	}
	rotation{url: text, files: map[string]string{file: fmt.Sprintf(credentials, "AFTER")}, revoke: func() {
		mu.Lock()
		defer mu.Unlock()
		valid = "AKIAAFTER"
	}}.under(t)
}

// TestFinding_L5_TokensOfKubernetes: the account of the token that the file had is deleted. It is row N3's first point as well: the file is
// read again at the first 401, not a minute after it was last read.
func TestFinding_L5_TokensOfKubernetes(t *testing.T) {
	srv := servers.Kubernetes(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: srv.TLSConfig()}}
	defer client.CloseIdleConnections()
	admin := asAdmin{t, client, "Authorization", "Bearer " + srv.Extra["token"]}
	type object map[string]any
	rbac := srv.URL + "/apis/rbac.authorization.k8s.io/v1/"
	admin.must("POST", rbac+"clusterrolebindings", object{
		"metadata": object{"name": "holders"}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts:default"}},
	}, nil)
	accounts := srv.URL + "/api/v1/namespaces/default/serviceaccounts"
	token := func(name string) string {
		admin.must("POST", accounts, object{"metadata": object{"name": name}}, nil)
		var made struct{ Status struct{ Token string } }
		admin.must("POST", accounts+"/"+name+"/token", object{"spec": object{"expirationSeconds": 3600}}, &made)
		return made.Status.Token
	}
	before, after := token("before"), token("after")
	file := secretIn(t, before)
	config := secretIn(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority": %q}}],
		"users": [{"name": "u", "user": {"tokenFile": %q}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}]}`, srv.URL, srv.Extra["ca"], file))
	rotation{url: "k8s://default?kubeconfig=" + config, files: map[string]string{file: after}, revoke: func() {
		admin.must("DELETE", accounts+"/before", nil, nil)
		holder := asAdmin{t, client, "Authorization", "Bearer " + before}
		for holder.try("GET", accounts, nil, nil) != http.StatusUnauthorized { // the server remembers for some seconds
			time.Sleep(50 * time.Millisecond)
		}
	}}.under(t)
}
