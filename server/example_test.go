package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store/memory"
)

// Serve leases over HTTP. A program in any language acquires a name by one POST.
func ExampleNew() {
	st := memory.New(memory.Options{}) // or any other engine
	defer st.Close()
	srv, err := server.New(st, server.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	web := httptest.NewServer(srv) // or an http.Server of yours
	defer web.Close()

	answer, err := http.Post(web.URL+"/v1/leases/billing", "application/json", strings.NewReader(`{}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	fmt.Println(answer.Status, strings.Contains(string(body), `"token"`), err)
	// Output: 201 Created true <nil>
}
