package servers

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
)

// dynaliteCLI is where npm installs its command.
const dynaliteCLI = "node_modules/dynalite/cli.js"

var dynalite = register(&engine{
	name: "dynalite", title: "dynalite", ports: 1, options: "settings", extra: true,
	find: func() (string, error) {
		if _, err := Program("dynalite", dynaliteCLI); err != nil {
			return "", err
		}
		return exec.LookPath("node")
	},
	plan: func(_ context.Context, s *Server, node string) (command, error) {
		cli, err := Program("dynalite", dynaliteCLI)
		if err != nil {
			return command{}, err
		}
		s.reachDynamoDB("http://" + s.Addr)
		flags := map[string]string{
			"host": "127.0.0.1", "port": s.ports[0].String(), "path": filepath.Join(s.Dir, "data"),
			"createTableMs": "50", "deleteTableMs": "50", "updateTableMs": "50",
		}
		return command{args: append([]string{node, cli}, s.config.flags(flags)...)}, nil
	},
	ready:  dynamodb.ready,
	adopt:  dynamodb.adopt,
	store:  storeOfDynamoDB,
	client: dynamodbClient{},
})

// Dynalite starts dynalite, an emulator of DynamoDB that doesn't return the item which a condition
// failed on, has no transactions and no calls about TTL. It needs Node.js; where it is missing the
// test is skipped, even if all is required.
func Dynalite(t testing.TB, opts ...Option) *Server { t.Helper(); return start(t, dynalite, opts) }
