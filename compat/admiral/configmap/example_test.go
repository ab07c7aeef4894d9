package configmap_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/compat/admiral/configmap"
)

// Give each service the address that it had before, out of the ConfigMap that Admiral keeps.
func ExampleNew() {
	client := &http.Client{Timeout: 10 * time.Second} // one that authenticates: rest.HTTPClientFor of client-go makes it
	addresses, err := configmap.New(client, "https://10.96.0.1:443", "admiral-sync", "se-address-configmap")
	if err != nil {
		log.Fatal(err)
	}
	alloc, err := admiral.NewAllocator(addresses, admiral.DefaultPrefix)
	if err != nil {
		log.Fatal(err)
	}
	address, err := alloc.Address(context.Background(), "billing.global")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(address)
}
