package consul

import (
	"testing"

	"github.com/hashicorp/consul/api"
)

// TestFinding_S15_AServerThatGaveUpDoesNotRefuse: 408 and 499 say that a request took too long, not that it wasn't carried out.
func TestFinding_S15_AServerThatGaveUpDoesNotRefuse(t *testing.T) {
	for code, want := range map[int]bool{408: false, 499: false, 500: false, 403: true, 413: true, 429: true} {
		if got := refused(api.StatusError{Code: code, Body: "given up"}); got != want {
			t.Errorf("%d: certainly not done: %v, want %v", code, got, want)
		}
	}
}
