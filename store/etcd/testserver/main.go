// Package main is etcd. Its own main package can't be installed by version, for its go.mod has
// replace lines.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
