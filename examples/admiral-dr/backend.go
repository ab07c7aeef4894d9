package main

import (
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

	"github.com/leasehold/leasehold/admiral"
	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/neighbour"
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

// lockFile keeps every process from writing to the store's file, as one that is stopped in the middle of a write does.
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
	endpoint := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
	if endpoint == "" {
		proc, url, err := startDynamoDB(dir)
		if err != nil {
			return nil, err
		}
		endpoint = url
		b.stop = func() { _ = proc.Process.Kill(); _ = proc.Wait() }
		b.cut = func() (func(), error) {
			return func() { _ = proc.Process.Signal(syscall.SIGCONT) }, proc.Process.Signal(syscall.SIGSTOP)
		}
	}
	cfg := admiral.Config{
		LeaseName: leaseName, PodIdentifier: "operator", WaitTime: time.Second, FailureThreshold: 3, TableName: table, Endpoint: endpoint,
	}
	b.what = fmt.Sprintf("the table %s of DynamoDB Local at %s", table, endpoint)
	b.config = fmt.Sprintf("  tableName: %s\n  endpoint: %s\n", table, endpoint)
	b.open = func(ctx context.Context) (store.Store, error) { return openTable(ctx, cfg) }
	if err := makeTable(ctx, client(endpoint)); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// startDynamoDB starts the program that `scripts/engines install` has installed.
func startDynamoDB(dir string) (*exec.Cmd, string, error) {
	program, err := servers.Program("dynamodb", "Loopback.class")
	if err != nil {
		return nil, "", err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once: the server takes a port, not a listener
	if err != nil {
		return nil, "", err
	}
	addr := l.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	if err := errors.Join(err, l.Close()); err != nil {
		return nil, "", err
	}
	home := filepath.Dir(program)
	cmd := exec.Command(java, "-Xmx256m", "-Djava.library.path="+home, "-cp", home+":"+home+"/*", "Loopback", //nolint:noctx // ended by stop
		"-sharedDb", "-inMemory", "-disableTelemetry", "-port", port)
	cmd.Dir = dir
	return cmd, "http://" + addr, cmd.Start()
}

func client(endpoint string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: region, BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil // DynamoDB Local takes any
		}),
	})
}

// makeTable makes Admiral's table once the server is up.
func makeTable(ctx context.Context, db *dynamodb.Client) error {
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), 30*time.Second)
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
		if clock.Sleep(ctx, clock.System(), 100*time.Millisecond) != nil {
			return err
		}
	}
}

func openTable(_ context.Context, cfg admiral.Config) (store.Store, error) {
	st, err := neighbour.Admiral(client(cfg.Endpoint), neighbour.AdmiralOptions{Table: cfg.TableName, Wait: cfg.WaitTime, Threshold: cfg.FailureThreshold})
	if err != nil {
		return nil, err
	}
	return st, nil
}
