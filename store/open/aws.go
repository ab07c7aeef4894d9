//go:build !lite

package open

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold/leasehold/clock"
)

// LoadAWS returns the configuration that the AWS CLI would have, with the HTTP client in it, whose
// connections can be closed. The SDK logs nothing under this configuration. Its errors say what
// matters, and its log lines fit no --log-format. When AWS refuses credentials, the client looks
// for new ones where the old ones came from, and sends the request once more.
func LoadAWS(ctx context.Context, opts ...func(*config.LoadOptions) error) (aws.Config, *http.Client, error) {
	opts = append(opts, config.WithLogger(logging.Nop{}))
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return aws.Config{}, nil, fmt.Errorf("the AWS configuration can't be read: %w", err)
	}
	client := closable(cfg.HTTPClient)
	cfg.HTTPClient = client
	fresh := &awsCredentials{load: opts, now: cfg.Credentials}
	fresh.cache = aws.NewCredentialsCache(fresh)
	cfg.Credentials = fresh.cache
	cfg.APIOptions = append(cfg.APIOptions, fresh.install)
	return cfg, client, nil
}

// closable returns the AWS SDK's client, with the settings that it has (AWS_CA_BUNDLE, …), as one
// whose connections can be closed.
func closable(client config.HTTPClient) *http.Client {
	buildable, ok := client.(*awshttp.BuildableClient)
	if !ok {
		buildable = awshttp.NewBuildableClient()
	}
	return &http.Client{
		Transport:     buildable.GetTransport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// awsCredentials are found again when they are refused. The SDK by itself reads files once, and
// asks for a role's again when they end.
type awsCredentials struct {
	load  []func(*config.LoadOptions) error
	cache *aws.CredentialsCache // of what it retrieves

	mu    sync.Mutex
	now   aws.CredentialsProvider
	found clock.Instant
}

// refusals are the codes of errors that other credentials may mend. None of them was carried out.
var refusals = []string{
	"UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch", "ExpiredToken",
	"ExpiredTokenException", "RequestExpired", "AccessDenied", "AccessDeniedException", "MissingAuthenticationTokenException",
}

// Retrieve implements [aws.CredentialsProvider].
func (c *awsCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c.mu.Lock()
	now := c.now
	c.mu.Unlock()
	return now.Retrieve(ctx)
}

// install has each request tried again with what renew finds.
func (c *awsCredentials) install(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("leaseholdCredentials",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleInitialize(ctx, in)
			var refusal smithy.APIError
			if errors.As(err, &refusal) && slices.Contains(refusals, refusal.ErrorCode()) && c.renew(ctx) {
				return next.HandleInitialize(ctx, in)
			}
			return out, metadata, err
		}), middleware.Before)
}

// renew looks for the credentials again, once a second at most, and reports whether it found
// others.
func (c *awsCredentials) renew(ctx context.Context) bool {
	before, err := c.cache.Retrieve(ctx)
	c.mu.Lock()
	since := clock.System().Now().Sub(c.found)
	if err != nil || c.found != 0 && since < time.Second {
		c.mu.Unlock()
		return false
	}
	c.found = clock.System().Now()
	c.mu.Unlock()
	cfg, err := config.LoadDefaultConfig(ctx, c.load...)
	if err != nil {
		return false // the refusal says enough
	}
	after, err := cfg.Credentials.Retrieve(ctx)
	if err != nil || after.AccessKeyID == before.AccessKeyID && after.SecretAccessKey == before.SecretAccessKey && after.SessionToken == before.SessionToken {
		return false
	}
	c.mu.Lock()
	c.now = cfg.Credentials
	c.mu.Unlock()
	c.cache.Invalidate()
	return true
}
