package fencedynamodb_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencedynamodb"
	"github.com/leasehold/leasehold/fence/fencetest"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(n uint64) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }

func key(name string) item { return item{"pk": text("fence"), "sk": text(name)} }

// client counts requests by operation.
type client struct {
	*dynamodb.Client
	gets, updates, transactions atomic.Int64
}

func (c *client) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	c.gets.Add(1)
	return c.Client.GetItem(ctx, in, opts...)
}

func (c *client) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	c.updates.Add(1)
	return c.Client.UpdateItem(ctx, in, opts...)
}

func (c *client) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.transactions.Add(1)
	return c.Client.TransactWriteItems(ctx, in, opts...)
}

// table is a guarded table with one item of interest, which has a log of what was written under which token.
type table struct {
	t      testing.TB
	client *client
	name   string
	guard  *fencedynamodb.Guard
}

var theLog = item{"pk": text("log"), "sk": text("log")}

func newTable(t testing.TB) *table {
	t.Helper()
	srv := servers.DynamoDB(t, servers.Shared())
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	tab := &table{t: t, name: fmt.Sprintf("fence-%d", time.Now().UnixNano()), client: &client{Client: dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &srv.URL, HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})}}
	in := &dynamodb.CreateTableInput{
		TableName: &tab.name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}, {AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
	}
	if _, err := tab.client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := tab.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &tab.name}); err != nil {
			t.Log(err)
		}
	})
	tab.reopen()
	return tab
}

func (tab *table) reopen() {
	var err error
	if tab.guard, err = fencedynamodb.New(tab.client, tab.name, key); err != nil {
		tab.t.Fatal(err)
	}
}

func (tab *table) get(key item) item {
	tab.t.Helper()
	out, err := tab.client.Client.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &tab.name, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		tab.t.Fatal(err)
	}
	return out.Item
}

func (tab *table) set(it item) {
	tab.t.Helper()
	if _, err := tab.client.PutItem(tab.t.Context(), &dynamodb.PutItemInput{TableName: &tab.name, Item: it}); err != nil {
		tab.t.Fatal(err)
	}
}

func (tab *table) written() (tokens []fence.Token) {
	tab.t.Helper()
	list, _ := tab.get(theLog)["entries"].(*types.AttributeValueMemberL)
	if list == nil {
		return nil
	}
	for _, entry := range list.Value {
		token, err := fence.ParseToken(entry.(*types.AttributeValueMemberN).Value)
		if err != nil {
			tab.t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	return tokens
}

// appends is the caller's own expression.
func appends(s fence.Sequencer) (expression *string, names map[string]string, values item) {
	return aws.String("REMOVE nothing Set #e = list_append(if_not_exists(#e, :none), :entry)"), map[string]string{"#e": "entries"},
		item{":none": &types.AttributeValueMemberL{}, ":entry": &types.AttributeValueMemberL{Value: []types.AttributeValue{number(uint64(s.Token))}}}
}

func (tab *table) update(ctx context.Context, s fence.Sequencer) error {
	expression, names, values := appends(s)
	_, err := fencedynamodb.Update(ctx, tab.client, s, &dynamodb.UpdateItemInput{
		TableName: &tab.name, Key: theLog, UpdateExpression: expression, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	return err
}

// put reads the item, and writes it under the condition of its own that nobody has changed it since.
func (tab *table) put(ctx context.Context, s fence.Sequencer) error {
	for {
		old := tab.get(theLog)
		next := item{"pk": theLog["pk"], "sk": theLog["sk"], "rev": number(0)}
		in := &dynamodb.PutItemInput{TableName: &tab.name, Item: next, ConditionExpression: aws.String("attribute_not_exists(pk)")}
		entries := []types.AttributeValue{}
		if old != nil {
			entries = old["entries"].(*types.AttributeValueMemberL).Value
			next["rev"] = number(uint64(len(entries)))
			in.ConditionExpression = aws.String("rev = :rev OR attribute_not_exists(pk)")
			in.ExpressionAttributeValues = item{":rev": old["rev"]}
		}
		next["entries"] = &types.AttributeValueMemberL{Value: append(slices.Clone(entries), number(uint64(s.Token)))}
		_, err := fencedynamodb.Put(ctx, tab.client, s, in)
		if failed := new(types.ConditionalCheckFailedException); !errors.As(err, &failed) {
			return err
		}
	}
}

func (tab *table) transact(ctx context.Context, s fence.Sequencer) error {
	expression, names, values := appends(s)
	for {
		_, err := tab.guard.Transact(ctx, s, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Update: &types.Update{
			TableName: &tab.name, Key: theLog, UpdateExpression: expression, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		}}}})
		if !conflicts(err) {
			return err
		}
	}
}

func conflicts(err error) bool {
	var cancelled *types.TransactionCanceledException
	return errors.As(err, &cancelled) && slices.ContainsFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == "TransactionConflict"
	})
}

func TestStoryAndRace(t *testing.T) {
	for name, write := range map[string]func(*table) fencetest.Write{
		"Put": func(tab *table) fencetest.Write { return tab.put }, "Update": func(tab *table) fencetest.Write { return tab.update },
		"Transact": func(tab *table) fencetest.Write { return tab.transact },
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("Story", func(t *testing.T) {
				tab := newTable(t)
				fencetest.Story(t, write(tab), fencetest.Options{Reopen: tab.reopen, Written: tab.written})
			})
			t.Run("Race", func(t *testing.T) {
				tab := newTable(t)
				fencetest.Race(t, write(tab), tab.written)
			})
		})
	}
}

func TestCheckIsAGuard(t *testing.T) {
	tab := newTable(t)
	fencetest.Story(t, func(ctx context.Context, s fence.Sequencer) error { return tab.guard.Check(ctx, s) }, fencetest.Options{Reopen: tab.reopen})
}

// The caller's condition counts as it does without a guard, and so does everything else that it asks for.
func TestCallersConditions(t *testing.T) {
	tab := newTable(t)
	ctx, s := t.Context(), fence.Sequencer{Name: "n", Holder: "a", Token: 5}
	id := item{"pk": text("account"), "sk": text("1")}
	in := &dynamodb.PutItemInput{
		TableName: &tab.name, Item: item{"pk": id["pk"], "sk": id["sk"], "balance": number(100)},
		ConditionExpression: aws.String("balance = :b OR attribute_not_exists(pk)"), ExpressionAttributeValues: item{":b": number(50)},
	}
	if _, err := fencedynamodb.Put(ctx, tab.client, s, in); err != nil {
		t.Fatal(err)
	}
	if len(in.Item) != 3 || len(in.ExpressionAttributeNames) != 0 || len(in.ExpressionAttributeValues) != 1 {
		t.Errorf("the caller's input was changed: %+v", in)
	}
	var failed *types.ConditionalCheckFailedException
	if _, err := fencedynamodb.Put(ctx, tab.client, s, in); !errors.As(err, &failed) || errors.Is(err, fence.ErrStale) {
		t.Errorf("where the caller's own condition fails: %v", err)
	}
	late := s
	late.Token = 4
	if _, err := fencedynamodb.Put(ctx, tab.client, late, in); !errors.Is(err, fence.ErrStale) {
		t.Errorf("where both fail: %v", err)
	}
	// What stands for the mark can't be made to stand for something else.
	if _, err := fencedynamodb.Put(ctx, tab.client, late, &dynamodb.PutItemInput{
		TableName: &tab.name, Item: in.Item, ExpressionAttributeNames: map[string]string{"#leasehold_token": "absent", "#leasehold_holder": "absent"},
	}); !errors.Is(err, fence.ErrStale) {
		t.Errorf("with another meaning of the words in our condition: %v", err)
	}
	for _, c := range []struct {
		expression    string
		balance, more string
	}{
		{"SET balance = balance - :n", "70", ""},
		{"REMOVE x[0] set balance = balance - :n", "70", ""},
		{"ADD more :n", "100", "30"},
		{"ADD more :n SET\nbalance = :n", "30", "30"},
		{"", "100", ""},
	} {
		tab.set(item{"pk": id["pk"], "sk": id["sk"], "balance": number(100), "x": &types.AttributeValueMemberL{}})
		up := &dynamodb.UpdateItemInput{TableName: &tab.name, Key: id, ReturnValues: types.ReturnValueAllNew}
		if c.expression != "" {
			up.UpdateExpression, up.ExpressionAttributeValues = &c.expression, item{":n": number(30)}
		}
		out, err := fencedynamodb.Update(ctx, tab.client, s, up)
		if err != nil {
			t.Errorf("%q: %v", c.expression, err)
			continue
		}
		if b, m, token := digits(out.Attributes["balance"]), digits(out.Attributes["more"]), digits(out.Attributes[fencedynamodb.TokenAttribute]); b != c.balance || m != c.more || token != "5" {
			t.Errorf("%q: balance %s, more %s, token %s", c.expression, b, m, token)
		}
	}
}

func digits(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// One request for each transaction, refused or not; the first of a new token writes the mark, and no other does.
func TestCost(t *testing.T) {
	tab := newTable(t)
	c := tab.client
	for token := fence.Token(10); token < 13; token++ {
		s := fence.Sequencer{Name: "n", Holder: "a", Token: token}
		for i := range 3 {
			u, x := c.updates.Load(), c.transactions.Load()
			if err := tab.transact(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			u, x = c.updates.Load()-u, c.transactions.Load()-x
			if first := i == 0; first && (u != 1 || x != 2) || !first && (u != 0 || x != 1) {
				t.Errorf("write %d under token %d took %d transactions and %d writes of the mark", i+1, token, x, u)
			}
			if err := tab.guard.Check(t.Context(), s); err != nil {
				t.Error(err)
			}
		}
		u, x := c.updates.Load(), c.transactions.Load()
		s.Holder = "b"
		if err := tab.transact(t.Context(), s); !errors.Is(err, fence.ErrStale) || c.updates.Load() != u || c.transactions.Load() != x+1 {
			t.Errorf("refused with %v by %d transactions", err, c.transactions.Load()-x)
		}
	}
	if n := c.updates.Load(); n != 3 {
		t.Errorf("%d writes of the mark for 3 tokens", n)
	}
}

// A transaction that is cancelled for the caller's reasons says so, in the caller's order.
func TestCancellation(t *testing.T) {
	tab := newTable(t)
	s := fence.Sequencer{Name: "n", Holder: "a", Token: 5}
	in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: &tab.name, Item: item{"pk": text("a"), "sk": text("a")}}},
		{Delete: &types.Delete{TableName: &tab.name, Key: theLog, ConditionExpression: aws.String("attribute_exists(pk)")}},
	}}
	_, err := tab.guard.Transact(t.Context(), s, in)
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || errors.Is(err, fence.ErrStale) || aws.ToString(cancelled.CancellationReasons[1].Code) != "ConditionalCheckFailed" || len(in.TransactItems) != 2 {
		t.Errorf("%v", err)
	}
	if tab.get(item{"pk": text("a"), "sk": text("a")}) != nil {
		t.Error("a half of it was done")
	}
	if _, err := tab.guard.Transact(t.Context(), s, &dynamodb.TransactWriteItemsInput{}); err != nil {
		t.Errorf("nothing but the check: %v", err)
	}
}

// late does something before the mark is written. A silent one doesn't tell what the mark was instead, as old servers do.
type late struct {
	*client
	before func()
	silent bool
}

func (l late) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	l.before()
	out, err := l.client.UpdateItem(ctx, in, opts...)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) && l.silent {
		failed.Item = nil
	}
	return out, err
}

// Between the check and the write of the mark, others come.
func TestOvertaken(t *testing.T) {
	tab := newTable(t)
	s := fence.Sequencer{Name: "n", Holder: "a", Token: 5}
	var raised fence.Sequencer
	before := func() {
		if err := tab.guard.Check(t.Context(), raised); err != nil {
			t.Error(err)
		}
	}
	overtaken := must(fencedynamodb.New(late{tab.client, before, false}, tab.name, key))
	raised = s
	if _, err := overtaken.Transact(t.Context(), s, &dynamodb.TransactWriteItemsInput{}); err != nil {
		t.Errorf("by one of the same term: %v", err)
	}
	s.Token, raised = 6, fence.Sequencer{Name: "n", Holder: "b", Token: 7}
	var stale *fence.StaleError
	_, err := overtaken.Transact(t.Context(), s, &dynamodb.TransactWriteItemsInput{})
	if !errors.As(err, &stale) || *stale != (fence.StaleError{Name: "n", Got: 6, Current: 7, Holder: "b"}) {
		t.Errorf("by one of a later term: %v", err)
	}
	s.Token, raised = 8, fence.Sequencer{Name: "n", Holder: "b", Token: 9}
	silent := must(fencedynamodb.New(late{tab.client, before, true}, tab.name, key))
	if err := silent.Check(t.Context(), s); err == nil {
		t.Error("it was admitted by a guard that could not tell")
	}
}

func TestBadInput(t *testing.T) {
	tab := newTable(t)
	for _, bad := range []fence.Sequencer{{Name: "n", Holder: "a"}, {Name: "n", Holder: "a", Token: fence.MaxToken + 1}, {Holder: "a", Token: 5}, {Name: "n", Token: 5}} {
		for what, write := range map[string]fencetest.Write{"Put": tab.put, "Update": tab.update, "Transact": tab.transact, "Check": tab.guard.Check} {
			if err := write(t.Context(), bad); !errors.Is(err, fence.ErrMalformed) {
				t.Errorf("%s %+v: %v", what, bad, err)
			}
		}
	}
	s := fence.Sequencer{Name: "n", Holder: "a", Token: 5}
	for name, it := range map[string]item{
		"text":      {fencedynamodb.TokenAttribute: text("6")},
		"fraction":  {fencedynamodb.TokenAttribute: &types.AttributeValueMemberN{Value: "7.5"}, fencedynamodb.HolderAttribute: text("a")},
		"no holder": {fencedynamodb.TokenAttribute: number(7)},
	} {
		for _, at := range []item{theLog, key("n")} {
			it["pk"], it["sk"] = at["pk"], at["sk"]
			it["entries"] = &types.AttributeValueMemberL{}
			tab.set(it)
		}
		for what, write := range map[string]fencetest.Write{"Update": tab.update, "Transact": tab.transact, "Check": tab.guard.Check} {
			if err := write(t.Context(), s); err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "can't be read") {
				t.Errorf("%s under a mark with %s: %v", what, name, err)
			}
		}
	}
	for what, g := range map[string]func() (*fencedynamodb.Guard, error){
		"client": func() (*fencedynamodb.Guard, error) { return fencedynamodb.New(nil, "t", key) },
		"table":  func() (*fencedynamodb.Guard, error) { return fencedynamodb.New(tab.client, "", key) },
		"key":    func() (*fencedynamodb.Guard, error) { return fencedynamodb.New(tab.client, "t", nil) },
	} {
		if _, err := g(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("without a %s: %v", what, err)
		}
	}
}

// A number that is lower than every token is no mark, and does not count as a low one.
func TestFinding_G7_AMarkThatIsNoneRefusesAll(t *testing.T) {
	tab := newTable(t)
	s := fence.Sequencer{Name: "n", Holder: "a", Token: 5}
	for _, mark := range []string{"-5", "-1", "0"} {
		for _, at := range []item{theLog, key("n")} {
			tab.set(item{"pk": at["pk"], "sk": at["sk"], "rev": number(0), "entries": &types.AttributeValueMemberL{},
				fencedynamodb.TokenAttribute: &types.AttributeValueMemberN{Value: mark}, fencedynamodb.HolderAttribute: text("a")})
		}
		for what, write := range map[string]fencetest.Write{"Put": tab.put, "Update": tab.update, "Transact": tab.transact, "Check": tab.guard.Check} {
			if err := write(t.Context(), s); err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "can't be read") {
				t.Errorf("%s under a mark of %s: %v", what, mark, err)
			}
		}
		if got := tab.written(); len(got) != 0 {
			t.Errorf("written under a mark of %s: %v", mark, got)
		}
	}
}

func must(g *fencedynamodb.Guard, err error) *fencedynamodb.Guard {
	if err != nil {
		panic(err)
	}
	return g
}
