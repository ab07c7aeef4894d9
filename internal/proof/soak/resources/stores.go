package resources

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fenceetcd"
	"github.com/leasehold/leasehold/fence/fenceredis"
)

// inEtcd has a key for each line, which etcd knows the order of.
type inEtcd struct {
	*clientv3.Client
	guard *fenceetcd.Guard
}

func openEtcd(ctx context.Context, url string) (Resource, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{url}, Logger: clientv3.NewCtxClient(ctx).GetLogger(), // silent
	})
	if err != nil {
		return nil, err
	}
	guard, err := fenceetcd.New(client, fenceetcd.Options{})
	return &inEtcd{client, guard}, err
}

func (r *inEtcd) Write(ctx context.Context, s fence.Sequencer, line string) error {
	_, err := r.guard.Txn(ctx, s).Then(clientv3.OpPut("log/"+s.Name+"/"+line, "")).Commit()
	return err
}

func (r *inEtcd) Log(ctx context.Context, name string) (lines []string, err error) {
	prefix := "log/" + name + "/"
	resp, err := r.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return nil, err
	}
	for _, kv := range resp.Kvs {
		lines = append(lines, strings.TrimPrefix(string(kv.Key), prefix))
	}
	return lines, nil
}

// inRedis has a list for each name.
type inRedis struct {
	*redis.Client
	guard *fenceredis.Guard
}

func openRedis(_ context.Context, url string) (Resource, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	opts.MaxRetries = -1 // so that no line is there twice
	client := redis.NewClient(opts)
	guard, err := fenceredis.New(client, fenceredis.Options{})
	return &inRedis{client, guard}, err
}

var push = fenceredis.NewScript(`return redis.call('RPUSH', KEYS[1], ARGV[1])`)

func (r *inRedis) Write(ctx context.Context, s fence.Sequencer, line string) error {
	return r.guard.Run(ctx, s, push, []string{"log:" + s.Name}, line).Err()
}

func (r *inRedis) Log(ctx context.Context, name string) ([]string, error) {
	return r.LRange(ctx, "log:"+name, 0, -1).Result()
}
