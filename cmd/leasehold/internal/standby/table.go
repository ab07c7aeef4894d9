//go:build !lite

package standby

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/dynamotables"
	"github.com/leasehold/leasehold/store/open"
)

// OpenTable is [TableOpener] for those who don't count.
func OpenTable(ctx context.Context, cfg admiral.Config) (store.Store, error) {
	return openTable(ctx, cfg, nil)
}

// TableOpener returns a function that opens the table that its configuration names, as openTable
// does. throttled is called for each request that the table refuses for its capacity.
func TableOpener(throttled func()) func(context.Context, admiral.Config) (store.Store, error) {
	count := func(r dynamotables.Request) {
		if r.Throttled() {
			throttled()
		}
	}
	return func(ctx context.Context, cfg admiral.Config) (store.Store, error) { return openTable(ctx, cfg, count) }
}

// CheckRegion returns an error if neither cfg nor a setting of AWS names the table's Region. It
// reads the environment and the files of AWS. Other faults of them are left to [OpenTable].
func CheckRegion(ctx context.Context, cfg admiral.Config) error {
	loaded, client, err := open.LoadAWS(ctx, config.WithRegion(cfg.Region)) // "" is AWS_REGION
	if err != nil {
		return nil //nolint:nilerr // a file that can't be read now may be there later
	}
	client.CloseIdleConnections()
	if loaded.Region == "" {
		return noRegion(cfg)
	}
	return nil
}

func noRegion(cfg admiral.Config) error {
	return fmt.Errorf("region is missing: that of table %s, as in region: us-east-2 under dynamoDB, or in AWS_REGION", cfg.TableName)
}

// openTable opens the table that cfg names, in Admiral's schema, under cfg's role. Credentials come
// from where the AWS CLI takes them; the role is assumed with them. It fails when there are none or
// the role is refused, rather than later, and when the table is one in which leases don't work or
// aren't safe: see [dynamotables.Store.Check].
func openTable(ctx context.Context, cfg admiral.Config, made func(dynamotables.Request)) (store.Store, error) {
	loaded, client, err := open.LoadAWS(ctx, config.WithRegion(cfg.Region)) // "" is AWS_REGION
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", cfg.TableName, err)
	}
	if loaded.Region == "" {
		client.CloseIdleConnections()
		return nil, noRegion(cfg)
	}
	if cfg.Role != "" {
		session := func(o *stscreds.AssumeRoleOptions) { o.RoleSessionName = sessionName(cfg.PodIdentifier) }
		role := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(loaded), cfg.Role, session)
		loaded.Credentials = aws.NewCredentialsCache(role)
		if _, err := loaded.Credentials.Retrieve(ctx); err != nil {
			client.CloseIdleConnections()
			return nil, fmt.Errorf("role %s: it can't be assumed: %w", cfg.Role, err)
		}
	}
	db := dynamodb.NewFromConfig(loaded, func(o *dynamodb.Options) {
		if cfg.Endpoint != "" {
			o.BaseEndpoint = &cfg.Endpoint
		}
	})
	st, err := dynamotables.Admiral(db, dynamotables.AdmiralOptions{
		Table: cfg.TableName, Wait: cfg.WaitTime, Threshold: cfg.FailureThreshold, Access: dynamotables.Access{HomeRegion: cfg.HomeRegion, PollMax: cfg.Looks(admiral.DynamoDB), OnRequest: made},
	})
	if err != nil {
		client.CloseIdleConnections()
		return nil, err
	}
	t := &table{st, client}
	if err := st.Check(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// table closes its connections with it.
type table struct {
	*dynamotables.Store
	client *http.Client
}

// Close implements [store.Store].
func (t *table) Close() error {
	err := t.Store.Close()
	t.client.CloseIdleConnections()
	return err
}

// sessionName makes a role session's name, for the audit trail, of a pod's: of 2 to 64 characters
// out of a small set.
func sessionName(pod string) string {
	const most = 64
	name := []byte("leasehold-")
	for _, r := range pod {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-', r == '=', r == ',', r == '@':
			name = append(name, byte(r))
		default:
			name = append(name, '-')
		}
	}
	return string(name[:min(len(name), most)])
}
