//go:build !lite

package open

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb"
)

// The parameters of a table's URL. What isn't there comes from where the AWS CLI takes it:
// AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, AWS_ACCESS_KEY_ID and the like, the files in
// ~/.aws, the machine's or the container's role.
const (
	paramRegion   = "region"
	paramEndpoint = "endpoint" // of DynamoDB Local, or a VPC endpoint
	// The one Region in which a global table in eventual mode is written.
	paramHomeRegion  = "home_region"
	paramProfile     = "profile"      // in ~/.aws
	paramServerClock = "server_clock" // a bound on the server's clock, for ages
	paramPoll        = "poll"         // the longest pause between two looks of a waiter
	// true: don't look at the table first, for identities that may not describe it.
	paramUnchecked = "unchecked"
)

var dynamoDBParams = []string{paramRegion, paramEndpoint, paramHomeRegion, paramProfile, paramServerClock, paramPoll, paramUnchecked}

var dynamoDBScheme = register(Scheme{
	Name: "dynamodb", Form: "dynamodb://TABLE", Doc: "a table of AWS DynamoDB",
	parse: func(rest string) (string, error) {
		_, err := parseDynamoDB(rest)
		return rest, err
	},
	open:   openDynamoDB,
	called: "DynamoDB", tag: "lite", alike: []string{"dynamo", "ddb"},
})

// dynamoDBURL is what a table's URL says.
type dynamoDBURL struct {
	table     string
	opts      dynamodb.Options
	neighbour opener // when the table is another lock library's
	server
}

func parseDynamoDB(rest string) (dynamoDBURL, error) {
	name, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return dynamoDBURL{}, errors.New("want dynamodb://TABLE")
	}
	name, query, _ := strings.Cut(name, "?")
	u := dynamoDBURL{table: strings.TrimSuffix(name, "/"), server: server{params: map[string]string{}}}
	if err := dynamodb.CheckTable(u.table); err != nil {
		return u, err
	}
	if err := u.readParams(query, append(neighbourParams(), dynamoDBParams...)); err != nil {
		return u, err
	}
	if e := u.params[paramEndpoint]; e != "" {
		if parsed, err := url.Parse(e); err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
			return u, fmt.Errorf("parameter %s=%q: want a URL such as http://127.0.0.1:8000", paramEndpoint, e)
		}
	}
	u.opts.HomeRegion = u.params[paramHomeRegion]
	var err error
	if u.opts.ServerClock, err = u.duration(paramServerClock, 0); err != nil {
		return u, err
	}
	if u.opts.PollMax, err = u.duration(paramPoll, 0); err != nil {
		return u, err
	}
	if u.opts.Unchecked, err = u.boolean(paramUnchecked, false); err != nil {
		return u, err
	}
	u.neighbour, err = u.schema()
	return u, err
}

// DynamoDBPlan returns what makes the table that u names: one of Leasehold's own, or Admiral's. It
// returns an error if u names something else, such as a table of another lock library.
func (u URL) DynamoDBPlan() (dynamodb.Plan, error) {
	if u.Scheme.Name != dynamoDBScheme.Name {
		return dynamodb.Plan{}, fmt.Errorf("%q: want dynamodb://TABLE", Redact(u.String()))
	}
	parsed, err := parseDynamoDB(u.Rest)
	p := dynamodb.Plan{Table: parsed.table, Admiral: parsed.params[paramSchema] == admiralSchema}
	if err == nil && parsed.neighbour != nil && !p.Admiral {
		err = fmt.Errorf("%q: a table for that schema is made as its own library says", Redact(u.String()))
	}
	return p, err
}

// DynamoDB is a table, and a client that reaches it.
type DynamoDB struct {
	Table  string
	Client *awsdynamodb.Client

	opts      dynamodb.Options
	neighbour opener
	http      *http.Client
}

// Close closes the client's connections.
func (d *DynamoDB) Close() { d.http.CloseIdleConnections() }

// DynamoDB returns the table that u names, and a client for it. It returns an error if u names
// something else.
func (u URL) DynamoDB(ctx context.Context) (*DynamoDB, error) {
	if _, err := u.DynamoDBPlan(); err != nil {
		return nil, err
	}
	return dialDynamoDB(ctx, u.Rest)
}

// awsTimeout bounds what is asked for credentials and the like.
const awsTimeout = 5 * time.Second

func dialDynamoDB(ctx context.Context, rest string) (*DynamoDB, error) {
	u, err := parseDynamoDB(rest)
	if err != nil {
		return nil, err
	}
	var load []func(*config.LoadOptions) error
	if region := u.params[paramRegion]; region != "" {
		load = append(load, config.WithRegion(region))
	}
	if profile := u.params[paramProfile]; profile != "" {
		load = append(load, config.WithSharedConfigProfile(profile))
	}
	cfg, client, err := LoadAWS(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", u.table, err)
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("table %s: no Region: add ?region=REGION to the URL, or set AWS_REGION", u.table)
	}
	d := &DynamoDB{Table: u.table, opts: u.opts, neighbour: u.neighbour, http: client}
	d.Client = awsdynamodb.NewFromConfig(cfg, func(o *awsdynamodb.Options) {
		if e := u.params[paramEndpoint]; e != "" {
			o.BaseEndpoint = &e
		}
	})
	d.opts.Identity = identity(cfg, d.Client)
	return d, nil
}

// identity says who the client is to AWS. Behind an endpoint of its own, STS is not asked, unless
// it has one, too.
func identity(cfg aws.Config, client *awsdynamodb.Client) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		ctx, cancel := clock.WithTimeout(ctx, clock.System(), awsTimeout)
		defer cancel()
		service := sts.NewFromConfig(cfg)
		if client.Options().BaseEndpoint != nil && service.Options().BaseEndpoint == nil {
			c, err := cfg.Credentials.Retrieve(ctx)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("access key %s from %s, at the endpoint %s", c.AccessKeyID, c.Source, aws.ToString(client.Options().BaseEndpoint)), nil
		}
		out, err := service.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", err
		}
		return aws.ToString(out.Arn), nil
	}
}

func openDynamoDB(ctx context.Context, rest string, _ Options) (store.Store, error) {
	d, err := dialDynamoDB(ctx, rest)
	if err != nil {
		return nil, err
	}
	if d.neighbour != nil {
		return openNeighbour(ctx, d.neighbour, d)
	}
	st, err := dynamodb.Open(ctx, d.Client, d.Table, d.opts)
	if err != nil {
		d.Close()
		return nil, err
	}
	return &dynamoDBStore{st, d}, nil
}

// dynamoDBStore closes its client with it.
type dynamoDBStore struct {
	*dynamodb.Store
	target *DynamoDB
}

func (s *dynamoDBStore) Close() error {
	err := s.Store.Close()
	s.target.Close()
	return err
}
