package zookeeper_test

import (
	"context"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/zookeeper"
)

// Hold a name on ZooKeeper.
func ExampleNew() {
	ctx := context.Background()
	conn, _, err := zk.Connect([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	st, err := zookeeper.New(conn, zookeeper.Options{Root: "/leasehold"})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	err = m.Run(ctx, "billing", func(_ context.Context, l *lease.Lease) error {
		log.Print("we hold billing, with token ", l.Token())
		return nil
	})
	log.Print(err)
}
