package shardhttp_test

import (
	"log"
	"net/http"

	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/shard/shardhttp"
)

// A worker serves the keys that it owns, and says who owns the others.
func ExampleHandler() {
	var owner *shard.Owner // from shard.Join
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := shardhttp.Slice(r.Context())
		if err := s.Check(); err != nil { // right before the write
			shardhttp.Refuse(w, err)
			return
		}
		w.Header().Set("Leasehold-Sequencer", s.Sequencer().String())
	})
	http.Handle("/", shardhttp.Handler(owner, api, shardhttp.Options{}))
}

// A caller's requests go to the workers that own their keys.
func ExampleTransport() {
	var router *shard.Router // from shard.NewRouter
	client := &http.Client{Transport: shardhttp.Transport(nil, router, shardhttp.Options{
		Key: func(r *http.Request) string { return r.URL.Query().Get("tenant") },
	})}
	resp, err := client.Get("http://orders/invoices?tenant=acme")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
}
