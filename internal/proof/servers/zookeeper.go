package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// zookeeperJar is where Debian installs it; its manifest names the other jars.
const zookeeperJar = "/usr/share/java/zookeeper.jar"

var zookeeper = &engine{
	name: "zookeeper", title: "ZooKeeper", ports: 1, options: "settings",
	find: func() (string, error) {
		if _, err := os.Stat(zookeeperJar); err != nil {
			return "", fmt.Errorf("there is no %s", zookeeperJar)
		}
		return exec.LookPath("java")
	},
	plan: planZooKeeper,
	ready: func(ctx context.Context, s *Server) error {
		answer, err := s.exchange(ctx, "srvr")
		if err == nil && !strings.Contains(answer, "Mode: ") {
			err = fmt.Errorf("srvr answered %q", answer)
		}
		return err
	},
	adopt: func(s *Server, url string) error {
		s.Addr = strings.Trim(strings.TrimPrefix(url, "zk://"), "/")
		s.URL = s.Addr
		if _, _, err := net.SplitHostPort(s.Addr); err != nil {
			return errors.New("want HOST:PORT")
		}
		return nil
	},
}

// ZooKeeper starts ZooKeeper with sessions of 1 s to 60 s; the settings tickTime and
// maxSessionTimeout move these. Its URL is its connect string.
func ZooKeeper(t testing.TB, opts ...Option) *Server { t.Helper(); return start(t, zookeeper, opts) }

func planZooKeeper(_ context.Context, s *Server, java string) (command, error) {
	settings := map[string]string{
		"tickTime": "500", "dataDir": s.Dir + "/data", "clientPort": s.ports[0].String(), "clientPortAddress": "127.0.0.1",
		"admin.enableServer": "false", "4lw.commands.whitelist": "srvr,ruok,mntr", "maxClientCnxns": "0", "maxSessionTimeout": "60000",
	}
	s.URL = s.Addr
	for name, value := range s.config.settings {
		settings[name] = value
	}
	file := filepath.Join(s.Dir, "zoo.cfg")
	all := config{settings: settings}
	if err := os.WriteFile(file, []byte(all.lines("%s=%s")), 0o600); err != nil {
		return command{}, err
	}
	return command{args: []string{
		java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Dzookeeper.jmx.log4j.disable=true",
		"-cp", zookeeperJar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file,
	}}, nil
}
