package engines

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/consul/api"
	goredis "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// dialer returns locks through a client of its own.
type dialer func(t testing.TB, srv *servers.Server) locker

// floors are the least that a lease of an engine can be made of: two conditional writes of what says who holds the name, by the same client,
// with nothing around them. They lock nothing that anybody else wants.
var floors = map[string]dialer{
	"etcd": etcdFloor, "consul": consulFloor, "zookeeper": zooKeeperFloor, "kubernetes": kubernetesFloor, "postgres": postgresFloor,
	"redis": redisFloor, "nats": natsFloor, "dynamodb": dynamoDBFloor,
}

// floorValue is about what says who holds a name: owner, token, time to live, since when, host and process.
var floorValue = strings.Repeat("x", 300)

var errRefused = errors.New("refused, though nobody else wants it")

// swapping returns locks that are taken and given back by one swap each. A swap writes the value under a name if that has the version old, the
// zero value if it isn't stored, and returns the next version.
func swapping[V any](swap func(ctx context.Context, name string, old V) (V, error)) locker {
	run, versions := strings.ToLower(rand.Text()), sync.Map{} // versions by name
	change := func(ctx context.Context, name string) error {
		was, _ := versions.Load(name)
		old, _ := was.(V)
		next, err := swap(ctx, run+name, old)
		if err == nil {
			versions.Store(name, next)
		}
		return err
	}
	return func(ctx context.Context, name string) (func() error, error) {
		return func() error { return change(ctx, name) }, change(ctx, name)
	}
}

// redisSwap writes a value and its version if the version is the one before.
var redisSwap = goredis.NewScript(`
if (redis.call('HGET', KEYS[1], 'version') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'record', ARGV[3])
return 1`)

func redisFloor(t testing.TB, srv *servers.Server) locker {
	client := redisClient(t, srv, srv.Addr)
	return swapping(func(ctx context.Context, name, old string) (string, error) {
		next := rand.Text()
		n, err := redisSwap.Run(ctx, client, []string{name}, old, next, floorValue).Int()
		if err == nil && n != 1 {
			err = errRefused
		}
		return next, err
	})
}

func etcdFloor(t testing.TB, srv *servers.Server) locker {
	client := etcdClient(t, srv.Addr)
	return swapping(func(ctx context.Context, name string, old int64) (int64, error) {
		resp, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(name), "=", old)).Then(clientv3.OpPut(name, floorValue)).Commit()
		switch {
		case err != nil:
			return 0, err
		case !resp.Succeeded:
			return 0, errRefused
		}
		return resp.Header.Revision, nil
	})
}

func consulFloor(t testing.TB, srv *servers.Server) locker {
	client := consulClient(t, srv.Addr)
	return swapping(func(ctx context.Context, name string, old uint64) (uint64, error) {
		op := &api.KVTxnOp{Verb: api.KVCAS, Key: name, Value: []byte(floorValue), Index: old} // unlike KV.CAS, it tells the next index
		ok, resp, _, err := client.Txn().Txn(api.TxnOps{{KV: op}}, new(api.QueryOptions).WithContext(ctx))
		switch {
		case err != nil:
			return 0, err
		case !ok:
			return 0, errRefused
		}
		return resp.Results[0].KV.ModifyIndex, nil
	})
}

func zooKeeperFloor(t testing.TB, srv *servers.Server) locker {
	conn := zkConnect(t, srv.Addr)
	return swapping(func(_ context.Context, name string, old *zk.Stat) (*zk.Stat, error) {
		if old == nil {
			_, err := conn.Create("/"+name, []byte(floorValue), 0, zk.WorldACL(zk.PermAll))
			return &zk.Stat{}, err
		}
		return conn.Set("/"+name, []byte(floorValue), old.Version)
	})
}

func kubernetesFloor(t testing.TB, srv *servers.Server) locker {
	leases := kubeClient(t, srv, srv.Addr).Leases(theNamespace(t, srv))
	return swapping(func(ctx context.Context, name string, old *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if old == nil {
			meta := metav1.ObjectMeta{Name: name, Annotations: map[string]string{"floor": floorValue}}
			return leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: meta}, metav1.CreateOptions{})
		}
		next := old.DeepCopy() // it has the resource version; an update that changes nothing isn't written
		holder := rand.Text()
		next.Spec.HolderIdentity = &holder
		return leases.Update(ctx, next, metav1.UpdateOptions{})
	})
}

func postgresFloor(t testing.TB, srv *servers.Server) locker {
	postgresKind.prepare(t, srv)
	pool := pgPool(t, srv, srv.Addr)
	const (
		insert = `INSERT INTO engines (key, version, record, written) VALUES ($1, $2, $3::text::json, clock_timestamp()) ON CONFLICT DO NOTHING`
		update = `UPDATE engines SET version = $2, record = $3::text::json, written = clock_timestamp() WHERE key = $1 AND version = $4`
	)
	return swapping(func(ctx context.Context, name, old string) (string, error) {
		statement, args := insert, []any{name, rand.Text(), `"` + floorValue + `"`}
		next := args[1].(string)
		if old != "" {
			statement, args = update, append(args, old)
		}
		tag, err := pool.Exec(ctx, statement, args...)
		if err == nil && tag.RowsAffected() != 1 {
			err = errRefused
		}
		return next, err
	})
}

func natsFloor(t testing.TB, srv *servers.Server) locker {
	natsKind.prepare(t, srv)
	kv, err := natsClient(t, srv.Addr).KeyValue(t.Context(), natsBucket)
	if err != nil {
		t.Fatal(err)
	}
	return swapping(func(ctx context.Context, name string, old uint64) (uint64, error) {
		return kv.Update(ctx, name, []byte(floorValue), old)
	})
}

func dynamoDBFloor(t testing.TB, srv *servers.Server) locker {
	dynamoDB.prepare(t, srv)
	client := awsClient(t, srv.Addr)
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	return swapping(func(ctx context.Context, name, old string) (string, error) {
		next := rand.Text()
		put := &awsdynamodb.PutItemInput{
			TableName: aws.String(dynamoDBTable), Item: map[string]types.AttributeValue{"key": text(name), "version": text(next), "record": text(floorValue)},
			ConditionExpression: aws.String("attribute_not_exists(version)"),
		}
		if old != "" {
			put.ConditionExpression, put.ExpressionAttributeValues = aws.String("version = :old"), map[string]types.AttributeValue{":old": text(old)}
		}
		_, err := client.PutItem(ctx, put)
		return next, err
	})
}
