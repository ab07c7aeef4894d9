package main

import (
	"context"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// admiralRow writes Admiral's row as Admiral does: without a condition.
func admiralRow(t testing.TB, db *dynamodb.Client, owner string, updated time.Time) {
	t.Helper()
	_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(admiral.DefaultTable), Item: map[string]types.AttributeValue{
		"leaseName":   &types.AttributeValueMemberS{Value: "prod"},
		"leaseOwner":  &types.AttributeValueMemberS{Value: owner},
		"updatedTime": &types.AttributeValueMemberN{Value: strconv.FormatInt(updated.Unix(), 10)},
		"notes":       &types.AttributeValueMemberS{Value: "Created at 1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStandbyOverAdmiralsTable: beside an instance of Admiral, and under a hold that was written by hand.
func TestStandbyOverAdmiralsTable(t *testing.T) { stalltest.Run(t, standbyOverAdmiralsTable) }

func standbyOverAdmiralsTable(t testing.TB) {
	srv := servers.DynamoDB(t)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	db := dynamodb.New(dynamodb.Options{
		Region: "us-east-2", BaseEndpoint: &srv.URL, HTTPClient: client,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
	key := "leaseName"
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(admiral.DefaultTable), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := newPods(t)
	config := func(pod string) string {
		t.Helper()
		text := strings.ReplaceAll(p.read(p.conf(pod)), "store: file:"+p.path("leases.db"), "endpoint: "+srv.URL)
		return p.put(pod+".yaml", text)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := p.command(args...)
		cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local")
		return cmd
	}
	start := func(pod string) {
		t.Helper()
		p.progs[pod] = p.launch(command("standby", "--config", config(pod), "--listen", "127.0.0.1:0", "--", "span", "span"))
	}
	waitFor := func(pod, reason string) {
		t.Helper()
		eventually(t, pod+" says "+reason, func() bool {
			_, st := p.get(pod, "/state")
			return strings.Contains(st.Reason+st.State, reason)
		})
	}

	admiralRow(t, db, "theirs", time.Now())
	start("a")
	start("b")
	var last time.Time // before its last sign of life was written
	for range 4 {      // longer than wait × threshold
		time.Sleep(standbyWait)
		last = time.Now()
		admiralRow(t, db, "theirs", last)
	}
	for _, pod := range []string{"a", "b"} {
		if _, st := p.get(pod, "/state"); st.State != "passive" || st.Owner != "theirs" {
			t.Errorf("%s beside an active Admiral: %+v", pod, st)
		}
	}
	active := p.active()
	if took := time.Since(last); took < standbyTTL || took > standbyTTL+5*time.Second {
		t.Errorf("taken over %v after its last sign of life", took)
	}
	row, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(admiral.DefaultTable), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{key: &types.AttributeValueMemberS{Value: "prod"}}})
	if err != nil {
		t.Fatal(err)
	}
	if owner, ok := row.Item["leaseOwner"].(*types.AttributeValueMemberS); !ok || !strings.HasPrefix(owner.Value, active+"/") {
		t.Errorf("the row: %v", row.Item)
	}

	admiralRow(t, db, admiral.SkipOwner, time.Now().Add(-time.Hour))
	waitFor("a", "operator")
	waitFor("b", "operator")
	time.Sleep(2 * standbyTTL)
	for _, pod := range []string{"a", "b"} {
		if _, st := p.get(pod, "/state"); st.State != "passive" || !st.Initialized {
			t.Errorf("%s under a hold: %+v", pod, st)
		}
	}
	if out, err := command("standby", "resume", "--config", "a.yaml").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	active = p.active()
	p.progs[active].signal(syscall.SIGKILL)
	<-p.progs[active].ended
	delete(p.progs, active)
	p.active()
}
