package servers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// client keeps one value on a server, by the plainest means there are. Its errors end a test.
type client interface {
	put(ctx context.Context, s *Server, value string) error
	get(ctx context.Context, s *Server) (string, error)
}

type etcdClient struct{}

func (etcdClient) put(ctx context.Context, s *Server, value string) error {
	body := fmt.Sprintf(`{"key":"a2V5","value":%q}`, base64.StdEncoding.EncodeToString([]byte(value)))
	return wants(200, "revision")(s.ask(ctx, "POST", s.URL+"/v3/kv/put", body))
}

func (etcdClient) get(ctx context.Context, s *Server) (string, error) {
	_, text, err := s.ask(ctx, "POST", s.URL+"/v3/kv/range", `{"key":"a2V5"}`)
	var answer struct{ Kvs []struct{ Value []byte } }
	if err := errors.Join(err, json.Unmarshal([]byte(text), &answer)); err != nil || len(answer.Kvs) != 1 {
		return "", fmt.Errorf("%q: %w", text, err)
	}
	return string(answer.Kvs[0].Value), nil
}

type consulClient struct{}

func (consulClient) put(ctx context.Context, s *Server, value string) error {
	return wants(200, "true")(s.ask(ctx, "PUT", s.URL+"/v1/kv/key", value, "X-Consul-Token", s.Extra["password"]))
}

func (consulClient) get(ctx context.Context, s *Server) (string, error) {
	status, text, err := s.get(ctx, s.URL+"/v1/kv/key?raw&consistent", "X-Consul-Token", s.Extra["password"])
	return text, wants(200, "")(status, text, err)
}

type kubernetesClient struct{}

func (kubernetesClient) put(ctx context.Context, s *Server, value string) error {
	url := s.URL + "/api/v1/namespaces/default/configmaps"
	body := fmt.Sprintf(`{"metadata":{"name":"key"},"data":{"value":%q}}`, value)
	header := []string{"Authorization", "Bearer " + s.Extra["token"], "Content-Type", "application/json"}
	status, text, err := s.ask(ctx, "POST", url, body, header...)
	if status == 409 {
		return wants(200, value)(s.ask(ctx, "PUT", url+"/key", body, header...))
	}
	return wants(201, value)(status, text, err)
}

func (kubernetesClient) get(ctx context.Context, s *Server) (string, error) {
	status, text, err := s.get(ctx, s.URL+"/api/v1/namespaces/default/configmaps/key", "Authorization", "Bearer "+s.Extra["token"])
	var answer struct{ Data struct{ Value string } }
	if err := wants(200, "value")(status, text, err); err != nil {
		return "", err
	}
	return answer.Data.Value, json.Unmarshal([]byte(text), &answer)
}

type redisClient struct{}

func (redisClient) run(ctx context.Context, s *Server, commands ...string) (string, error) {
	if p := s.Extra["password"]; p != "" {
		commands = append([]string{"AUTH " + p}, commands...)
	}
	return s.exchange(ctx, strings.Join(commands, "\r\n")+"\r\nQUIT\r\n")
}

func (r redisClient) put(ctx context.Context, s *Server, value string) error {
	text, err := r.run(ctx, s, "SET key "+value)
	return wants(0, "+OK\r\n+OK\r\n")(0, strings.TrimPrefix(text, strings.Repeat("+OK\r\n", min(1, len(s.Extra["password"])))), err)
}

func (r redisClient) get(ctx context.Context, s *Server) (string, error) {
	text, err := r.run(ctx, s, "GET key")
	if err != nil {
		return "", err
	}
	_, text, _ = strings.Cut(text, "$")
	_, text, _ = strings.Cut(text, "\r\n")
	value, _, _ := strings.Cut(text, "\r\n")
	return value, nil
}

type postgresClient struct{}

func (postgresClient) run(ctx context.Context, s *Server, statement string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.Extra["bin"], "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement)
	cmd.Env = os.Environ()
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &complaints)
	}
	return strings.TrimSpace(string(out)), err
}

func (p postgresClient) put(ctx context.Context, s *Server, value string) error {
	_, err := p.run(ctx, s, fmt.Sprintf("CREATE TABLE IF NOT EXISTS t (v text); DELETE FROM t; INSERT INTO t VALUES ('%s')", value))
	return err
}

func (p postgresClient) get(ctx context.Context, s *Server) (string, error) {
	return p.run(ctx, s, "SELECT v FROM t")
}

type dynamodbClient struct{}

func (dynamodbClient) do(ctx context.Context, s *Server, operation, body string) (int, string, error) {
	return s.ask(ctx, "POST", s.URL, body, dynamodbHeader(operation)...)
}

func (d dynamodbClient) put(ctx context.Context, s *Server, value string) error {
	_, text, err := d.do(ctx, s, "CreateTable", `{"TableName":"servers","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}],"KeySchema":[{"AttributeName":"k","KeyType":"HASH"}]}`)
	if err != nil || !strings.Contains(text, "TableStatus") && !strings.Contains(text, "ResourceInUseException") {
		return fmt.Errorf("%q: %w", text, err)
	}
	for !strings.Contains(text, "ACTIVE") {
		if _, text, err = d.do(ctx, s, "DescribeTable", `{"TableName":"servers"}`); err != nil {
			return err
		}
	}
	return wants(200, "{}")(d.do(ctx, s, "PutItem", fmt.Sprintf(`{"TableName":"servers","Item":{"k":{"S":"k"},"v":{"S":%q}}}`, value)))
}

func (d dynamodbClient) get(ctx context.Context, s *Server) (string, error) {
	_, text, err := d.do(ctx, s, "GetItem", `{"TableName":"servers","Key":{"k":{"S":"k"}},"ConsistentRead":true}`)
	var answer struct {
		Item struct{ V struct{ S string } }
	}
	return answer.Item.V.S, errors.Join(err, json.Unmarshal([]byte(text), &answer))
}

type natsClient struct{}

// request sends a request and returns the reply.
func (natsClient) request(ctx context.Context, s *Server, subject, body string) (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	in := bufio.NewReader(conn)
	if _, err := in.ReadString('\n'); err != nil { // INFO
		return "", err
	}
	if config, err := s.clientTLS(); err != nil {
		return "", err
	} else if config != nil {
		conn = tls.Client(conn, config)
		in = bufio.NewReader(conn)
	}
	password, _ := u.User.Password()
	if _, err := fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"user\":%q,\"pass\":%q}\r\nSUB in 1\r\nPUB %s in %d\r\n%s\r\n",
		u.User.Username(), password, subject, len(body), body); err != nil {
		return "", err
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(line, "-ERR") {
			return "", errors.New(line)
		}
		if strings.HasPrefix(line, "MSG in ") {
			return in.ReadString('\n')
		}
	}
}

func (n natsClient) put(ctx context.Context, s *Server, value string) error {
	text, err := n.request(ctx, s, "$JS.API.STREAM.CREATE.servers", `{"name":"servers","subjects":["key"],"storage":"file"}`)
	if err := wants(0, `"config"`)(0, text, err); err != nil {
		return err
	}
	text, err = n.request(ctx, s, "key", value)
	return wants(0, `"seq"`)(0, text, err)
}

func (n natsClient) get(ctx context.Context, s *Server) (string, error) {
	text, err := n.request(ctx, s, "$JS.API.STREAM.MSG.GET.servers", `{"last_by_subj":"key"}`)
	var answer struct{ Message struct{ Data []byte } }
	err = errors.Join(err, json.Unmarshal([]byte(text), &answer))
	return string(answer.Message.Data), err
}

type zookeeperClient struct{}

// request opens a session, makes one request and returns the reply after its header.
func (zookeeperClient) request(ctx context.Context, s *Server, op int32, fields ...any) ([]byte, int32, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
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

// within bounds one exchange with a server.
const within = 20 * time.Second
