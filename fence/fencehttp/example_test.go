package fencehttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencehttp"
)

// marks keep the highest token of each resource. A real one is as durable as what it guards.
type marks map[string]fence.Mark

func (m marks) Load(_ context.Context, resource string) (fence.Mark, error) { return m[resource], nil }

func (m marks) Save(_ context.Context, resource string, mark fence.Mark) error {
	m[resource] = mark
	return nil
}

// The handler refuses what was sent in an earlier term of the lease.
func ExampleHandler() {
	guard, err := fence.NewOffline(marks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "paid") })
	handler := fencehttp.Handler(guard, api, fencehttp.Options{
		Name: func(*http.Request) string { return "billing" }, // the lease that guards it
	})

	for _, token := range []fence.Token{42, 41} {
		seq := fence.Sequencer{Name: "billing", Holder: "web-1", Token: token} // at the holder: l.Sequencer()
		r := httptest.NewRequest(http.MethodPost, "/pay", nil)
		r.Header.Set(fence.Header, seq.String())
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		fmt.Println(token, answer.Code)
	}
	// Output:
	// 42 200
	// 41 412
}
