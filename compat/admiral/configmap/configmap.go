// Package configmap keeps service addresses in a ConfigMap of Kubernetes, as Admiral does, through
// plain HTTP: it brings no Kubernetes client into a program. A program that has one passes its
// authenticated http.Client (client-go: rest.HTTPClientFor).
package configmap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/leasehold/leasehold/compat/admiral"
)

// Store is one ConfigMap. It implements [admiral.Addresses]. It is safe for concurrent use.
type Store struct {
	client    *http.Client
	url       string // of the collection
	namespace string
	name      string
}

var _ admiral.Addresses = (*Store)(nil)

// New returns the ConfigMap of that name (--se_address_configmap) in namespace (--sync_namespace),
// which may not exist yet. server is the address of the API server: https://host:port. client
// authenticates and has a time limit. New does no I/O.
func New(client *http.Client, server, namespace, name string) (*Store, error) {
	base, err := url.Parse(server)
	switch {
	case client == nil:
		return nil, errors.New("configmap: New needs an HTTP client")
	case err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "":
		return nil, fmt.Errorf("configmap: server %q: want https://host:port", server)
	case namespace == "" || strings.Contains(namespace, "/"):
		return nil, fmt.Errorf("sync_namespace %q: want the name of a namespace", namespace)
	case name == "" || strings.Contains(name, "/"):
		return nil, fmt.Errorf("se_address_configmap %q: want the name of a ConfigMap", name)
	}
	return &Store{client, base.JoinPath("api", "v1", "namespaces", namespace, "configmaps").String(), namespace, name}, nil
}

// object is a ConfigMap. What is not looked at is passed back as it came.
type object map[string]json.RawMessage

// absent is the version of a ConfigMap that is not there.
const absent = ""

// Load implements [admiral.Addresses].
func (s *Store) Load(ctx context.Context) (text, version string, err error) {
	obj, version, err := s.get(ctx)
	if err != nil || version == absent {
		return "", version, err
	}
	data, err := dataOf(obj)
	return data[admiral.AddressKey], version, err
}

// get returns the ConfigMap and its resource version.
func (s *Store) get(ctx context.Context) (object, string, error) {
	status, body, err := s.do(ctx, http.MethodGet, s.url+"/"+s.name, nil)
	switch {
	case err != nil:
		return nil, "", err
	case status == http.StatusNotFound:
		return object{}, absent, nil
	case status != http.StatusOK:
		return nil, "", s.refused("read", status, body)
	}
	var obj object
	var meta struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := errors.Join(json.Unmarshal(body, &obj), json.Unmarshal(body, &meta)); err != nil {
		return nil, "", s.failed("read", err)
	}
	if meta.Metadata.ResourceVersion == "" {
		return nil, "", s.failed("read", errors.New("the answer has no resourceVersion"))
	}
	return obj, meta.Metadata.ResourceVersion, nil
}

func dataOf(obj object) (map[string]string, error) {
	data := map[string]string{}
	if raw := obj["data"]; raw != nil {
		if err := json.Unmarshal(raw, &data); err != nil {
			return nil, fmt.Errorf("data of the ConfigMap: %w", err)
		}
	}
	if data == nil { // null
		data = map[string]string{}
	}
	return data, nil
}

// Save implements [admiral.Addresses]. Keys of the ConfigMap other than serviceEntryAddressStore
// stay as they are.
func (s *Store) Save(ctx context.Context, text, version string) error {
	obj, current, err := s.get(ctx)
	switch {
	case err != nil:
		return err
	case current != version:
		return admiral.ErrChanged
	case version == absent:
		return s.create(ctx, text)
	}
	data, err := dataOf(obj)
	if err != nil {
		return s.failed("write", err)
	}
	data[admiral.AddressKey] = text
	if obj["data"], err = json.Marshal(data); err != nil {
		return err
	}
	// The metadata in obj bears the resource version: the server refuses the write when another one
	// came first.
	return s.send(ctx, http.MethodPut, s.url+"/"+s.name, obj, http.StatusOK)
}

func (s *Store) create(ctx context.Context, text string) error {
	return s.send(ctx, http.MethodPost, s.url, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]string{"name": s.name, "namespace": s.namespace},
		"data":     map[string]string{admiral.AddressKey: text},
	}, http.StatusCreated)
}

func (s *Store) send(ctx context.Context, method, target string, obj any, want int) error {
	body, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	status, answer, err := s.do(ctx, method, target, body)
	switch {
	case err != nil:
		return err
	case status == http.StatusConflict, method == http.MethodPut && status == http.StatusNotFound:
		return admiral.ErrChanged
	case status != want:
		return s.refused("write", status, answer)
	}
	return nil
}

// maxBody bounds an answer: a ConfigMap has at most 1 MiB of data, which JSON may write longer.
const maxBody = 8 << 20

func (s *Store) do(ctx context.Context, method, target string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return 0, nil, s.failed(method, err)
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, nil, s.failed(method, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(answer) > maxBody {
		err = fmt.Errorf("the answer is longer than %d bytes", maxBody)
	}
	if err != nil {
		return 0, nil, s.failed(method, err)
	}
	return resp.StatusCode, answer, nil
}

func (s *Store) failed(what string, err error) error {
	return fmt.Errorf("%s ConfigMap %s/%s: %w", what, s.namespace, s.name, err)
}

// refused says what the server said, and for a missing permission what to do.
func (s *Store) refused(what string, status int, body []byte) error {
	var said struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &said) != nil || said.Message == "" {
		said.Message = http.StatusText(status)
	}
	err := fmt.Errorf("%d: %s", status, said.Message)
	if status == http.StatusForbidden || status == http.StatusUnauthorized {
		err = fmt.Errorf("%w: allow get, create and update of configmaps in the namespace %s", err, s.namespace)
	}
	return s.failed(what, err)
}
