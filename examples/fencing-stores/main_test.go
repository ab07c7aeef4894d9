package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestRun(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (address string){
		"etcd":       func(t *testing.T) string { return servers.Etcd(t).Addr },
		"redis":      func(t *testing.T) string { return servers.Redis(t).URL },
		"dynamodb":   func(t *testing.T) string { return servers.DynamoDB(t).URL },
		"kubernetes": func(t *testing.T) string { return servers.Kubernetes(t).Extra["kubeconfig"] },
	} {
		t.Run(name, func(t *testing.T) {
			address := start(t)
			for range 2 { // again, over what the first time has left
				var out bytes.Buffer
				if err := run(t.Context(), []string{"-" + name, address}, &out); err != nil {
					t.Fatalf("%v\n%s", err, &out)
				}
				if text := out.String(); !strings.Contains(text, "refused") || !strings.HasSuffix(text, "the balance is 30\n") {
					t.Errorf("it said\n%s", text)
				}
			}
		})
	}
	if err := run(t.Context(), nil, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "-etcd") {
		t.Errorf("without a store: %v", err)
	}
}
