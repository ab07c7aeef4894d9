package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/dynamotables"
	"github.com/leasehold/leasehold/store/file"
)

// backend is where the lease is kept.
type backend struct {
	what   string // for people
	config string // the lines of the configuration file that name it
	open   func(context.Context) (store.Store, error)
	cut    func() (restore func(), err error) // an outage, for all
	stop   func()
}

// startBackend starts DynamoDB Local, or falls back to a file.
func startBackend(ctx context.Context, kind, dir string) (*backend, error) {
	switch kind {
	case inFile:
		return fileBackend(dir), nil
	case inDynamoDB:
	default:
		return nil, fmt.Errorf("-store %q: want %s or %s", kind, inDynamoDB, inFile)
	}
	b, err := dynamoDBBackend(ctx, dir)
	if err != nil {
		fmt.Fprintf(os.Stderr, "admiral-dr: no DynamoDB Local: %v\nadmiral-dr: the lease is kept in a file instead\n", err)
		return fileBackend(dir), nil
	}
	return b, nil
}

func fileBackend(dir string) *backend {
	path := filepath.Join(dir, "leases.db")
	cfg := admiral.Config{Store: path}
	return &backend{
		what: "the file " + path, config: "  store: " + path + "\n",
		open: func(ctx context.Context) (store.Store, error) { return openFile(ctx, cfg) },
		cut:  func() (func(), error) { return lockFile(path + ".lock") },
		stop: func() {},
	}
}

func openFile(ctx context.Context, cfg admiral.Config) (store.Store, error) {
	st, err := file.Open(ctx, cfg.Store, file.Options{})
	if err != nil {
		return nil, err // a nil *file.Store would make a store that isn't nil
	}
	return st, nil
}

// lockFile keeps every process from writing to the store's file, as one that is stopped in the
// middle of a write does.
func lockFile(path string) (restore func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

const (
	table  = "admiral-lease"
	region = "us-east-2"
)

// dynamoDBBackend is DynamoDB Local: one that is up already, or one of its own.
func dynamoDBBackend(ctx context.Context, dir string) (*backend, error) {
	b := &backend{stop: func() {}}
	up := func() error { return nil }
	endpoint := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
	if endpoint == "" {
		own, err := startDynamoDB(dir)
		if err != nil {
			return nil, err
		}
		endpoint, b.stop, up = own.url, own.stop, own.up
		b.cut = func() (func(), error) {
			return func() { _ = own.cmd.Process.Signal(syscall.SIGCONT) }, own.cmd.Process.Signal(syscall.SIGSTOP)
		}
	}
	cfg := admiral.Config{
		LeaseName: leaseName, PodIdentifier: "operator", WaitTime: time.Second, FailureThreshold: 3, TableName: table, Endpoint: endpoint,
	}
	b.what = fmt.Sprintf("the table %s of DynamoDB Local at %s", table, endpoint)
	b.config = fmt.Sprintf("  tableName: %s\n  endpoint: %s\n", table, endpoint)
	b.open = func(ctx context.Context) (store.Store, error) { return openTable(ctx, cfg) }
	if err := makeTable(ctx, client(endpoint), up); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// server is a DynamoDB Local of this program's own.
type server struct {
	cmd    *exec.Cmd
	url    string
	output bytes.Buffer  // to be read once ended is closed
	ended  chan struct{} // closed when it has ended
}

// startDynamoDB starts the program that `scripts/engines install` has installed.
func startDynamoDB(dir string) (*server, error) {
	program, err := servers.Program("dynamodb", "Loopback.class")
	if err != nil {
		return nil, err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once: the server takes a port, not a listener
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	if err := errors.Join(err, l.Close()); err != nil {
		return nil, err
	}
	home := filepath.Dir(program)
	s := &server{url: "http://" + addr, ended: make(chan struct{})}
	s.cmd = exec.Command(java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", //nolint:noctx // ended by stop
		"-Djava.library.path="+home, "-Djava.io.tmpdir="+dir, "-cp", home+":"+home+"/*", "Loopback", "-sharedDb", "-inMemory", "-disableTelemetry", "-port", port)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, &s.output, &s.output
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // stop waits for it
		defer close(s.ended)
		_ = s.cmd.Wait()
	}()
	return s, nil
}

// up returns an error once the server has ended.
func (s *server) up() error {
	select {
	case <-s.ended:
		return fmt.Errorf("it has ended:\n%s", s.output.Bytes())
	default:
		return nil
	}
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

func client(endpoint string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: region, BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			// DynamoDB Local takes any.
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
}

// makeTable makes Admiral's table once the server answers, as long as it is up. A busy machine
// takes its time to start a JVM.
func makeTable(ctx context.Context, db *dynamodb.Client, up func() error) error {
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), 2*time.Minute)
	defer cancel()
	key := "leaseName"
	for {
		_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
		})
		var there *types.ResourceInUseException
		if err == nil || errors.As(err, &there) {
			return nil
		}
		if ended := up(); ended != nil {
			return ended
		}
		if clock.Sleep(ctx, clock.System(), 100*time.Millisecond) != nil {
			return fmt.Errorf("it doesn't answer: %w", err)
		}
	}
}

func openTable(_ context.Context, cfg admiral.Config) (store.Store, error) {
	st, err := dynamotables.Admiral(client(cfg.Endpoint), dynamotables.AdmiralOptions{Table: cfg.TableName, Wait: cfg.WaitTime, Threshold: cfg.FailureThreshold})
	if err != nil {
		return nil, err
	}
	return st, nil
}
