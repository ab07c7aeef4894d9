package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/leasehold/leasehold/server/web"
)

// The server has the page already. A proxy that serves it from elsewhere asks which requests are the page's.
func ExampleServes() {
	for _, path := range []string{"/", "/v1/leases"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept", "text/html")
		fmt.Println(path, web.Serves(r))
	}
	// Output:
	// / true
	// /v1/leases false
}
