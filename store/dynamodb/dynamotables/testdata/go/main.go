// A client of dynamolock that does what it is told, a line at a time, and answers each line with
// one.
//
//	leasehold-neighbour URL TABLE OWNER LEASE HEARTBEAT
//
//	once NAME   held | taken
//	try NAME    held | taken     it waits for the lock to be abandoned: its lease and a second
//	release     released | lost  the row is deleted
//	keep        released | lost  the row is kept, and marked
//	has NAME    yes | no         does it think that it has the lock?
//
// What it can't do is answered by "error: …". It crashes by being killed.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

type neighbour struct {
	client *dynamolock.Client
	held   *dynamolock.Lock
	name   string // of what is held
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return errors.New("want URL TABLE OWNER LEASE HEARTBEAT")
	}
	url, table, owner := args[0], args[1], args[2]
	lease, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	heartbeat, err := time.ParseDuration(args[4])
	if err != nil {
		return err
	}
	db := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
	client, err := dynamolock.New(db, table,
		dynamolock.WithOwnerName(owner), dynamolock.WithLeaseDuration(lease), dynamolock.WithHeartbeatPeriod(heartbeat))
	if err != nil {
		return err
	}
	n := &neighbour{client: client}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		answer, err := n.answer(lines.Text())
		if err != nil {
			answer = "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(answer)
	}
	return lines.Err()
}

func (n *neighbour) answer(line string) (string, error) {
	word, name, _ := strings.Cut(line, " ")
	switch word {
	case "once":
		return n.acquire(name, dynamolock.FailIfLocked())
	case "try":
		return n.acquire(name)
	case "release":
		return n.release(dynamolock.WithDeleteLock(true))
	case "keep":
		return n.release()
	case "has":
		if n.held != nil && n.name == name && !n.held.IsExpired() {
			return "yes", nil
		}
		return "no", nil
	}
	return "", fmt.Errorf("%q is no command", line)
}

func (n *neighbour) acquire(name string, more ...dynamolock.AcquireLockOption) (string, error) {
	l, err := n.client.AcquireLockWithContext(context.Background(), name, append(more,
		dynamolock.WithRefreshPeriod(50*time.Millisecond), dynamolock.WithAdditionalTimeToWaitForLock(time.Second))...)
	var refused *dynamolock.LockNotGrantedError
	switch {
	case errors.As(err, &refused):
		return "taken", nil
	case err != nil:
		return "", err
	}
	n.held, n.name = l, name
	return "held", nil
}

func (n *neighbour) release(opts ...dynamolock.ReleaseLockOption) (string, error) {
	if n.held == nil {
		return "", errors.New("nothing is held")
	}
	l := n.held
	n.held = nil
	ok, err := n.client.ReleaseLockWithContext(context.Background(), l, opts...)
	if err != nil || !ok {
		return "lost", nil
	}
	return "released", nil
}
