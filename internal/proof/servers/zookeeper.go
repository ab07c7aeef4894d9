package servers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// zookeeperJar is where Debian installs it; its manifest names the other jars.
const zookeeperJar = "/usr/share/java/zookeeper.jar"

// zkCli is what distributions install under that name.
const zkCli = "#!/bin/sh\nexec java -cp " + zookeeperJar + " org.apache.zookeeper.ZooKeeperMain \"$@\"\n"

var zookeeper = register(&engine{
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
	store:  func(s *Server) Store { return Store{URL: "zk://" + s.Addr + "/leasehold"} },
	page:   Page{Address: regexp.MustCompile(`10\.0\.0\.5(?::2181)?`), Tools: map[string]string{"zkCli.sh": zkCli}},
	client: zookeeperClient{},
})

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

// zookeeperClient is the plainest client.
type zookeeperClient struct{}

// request opens a session, makes one request and returns the reply after its header.
func (zookeeperClient) request(ctx context.Context, s *Server, op int32, fields ...any) ([]byte, int32, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return nil, 0, err
	}
	hangUp := func() { _ = conn.Close() }
	defer hangUp()
	defer context.AfterFunc(ctx, hangUp)()
	exchange := func(fields ...any) ([]byte, error) {
		var b bytes.Buffer
		for _, field := range fields {
			if text, ok := field.(string); ok {
				_ = binary.Write(&b, binary.BigEndian, int32(len(text)))
				b.WriteString(text)
				continue
			}
			_ = binary.Write(&b, binary.BigEndian, field)
		}
		message := binary.BigEndian.AppendUint32(nil, uint32(b.Len()))
		if _, err := conn.Write(append(message, b.Bytes()...)); err != nil {
			return nil, err
		}
		var size int32
		if err := binary.Read(conn, binary.BigEndian, &size); err != nil {
			return nil, err
		}
		reply := make([]byte, size)
		_, err := io.ReadFull(conn, reply)
		return reply, err
	}
	if _, err := exchange(int32(0), int64(0), int32(5000), int64(0), strings.Repeat("\x00", 16), false); err != nil {
		return nil, 0, err
	}
	reply, err := exchange(append([]any{int32(1), op}, fields...)...)
	if err != nil || len(reply) < 16 {
		return nil, 0, fmt.Errorf("%q: %w", reply, err)
	}
	return reply[16:], int32(binary.BigEndian.Uint32(reply[12:])), nil
}

func (z zookeeperClient) put(ctx context.Context, s *Server, value string) error {
	_, code, err := z.request(ctx, s, 1, "/key", "", int32(1), int32(31), "world", "anyone", int32(0))
	if err != nil || code != 0 && code != -110 { // it exists
		return fmt.Errorf("create: code %d: %w", code, err)
	}
	_, code, err = z.request(ctx, s, 5, "/key", value, int32(-1))
	if err != nil || code != 0 {
		return fmt.Errorf("set: code %d: %w", code, err)
	}
	return nil
}

func (z zookeeperClient) get(ctx context.Context, s *Server) (string, error) {
	reply, code, err := z.request(ctx, s, 4, "/key", false)
	if err != nil || code != 0 || len(reply) < 4 {
		return "", fmt.Errorf("get: code %d: %w", code, err)
	}
	return string(reply[4 : 4+binary.BigEndian.Uint32(reply)]), nil
}
