package open

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store/dynamodb"
)

func TestParseDynamoDB(t *testing.T) {
	u, err := parseDynamoDB("//team.leases?region=eu-west-1&home_region=eu-west-1&server_clock=1m&poll=5s&unchecked=true&endpoint=http://127.0.0.1:8000")
	if err != nil || u.table != "team.leases" || u.opts.HomeRegion != "eu-west-1" || u.opts.ServerClock != time.Minute || u.opts.PollMax != 5*time.Second || !u.opts.Unchecked {
		t.Errorf("%+v, %v", u, err)
	}
	for rest, want := range map[string]string{
		"leases":                    "want dynamodb://TABLE",
		"//":                        `table ""`,
		"//leases/x":                `table "leases/x"`,
		"//leases?tls=true":         `unknown parameter "tls"`,
		"//leases?poll=x":           "poll",
		"//leases?poll=-1s":         "poll",
		"//leases?unchecked=1":      "want true or false",
		"//leases?server_clock=x":   "server_clock",
		"//leases?endpoint=ftp://x": "want a URL",
	} {
		if _, err := parseDynamoDB(rest); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rest, err, want)
		}
	}
}

// setAWS sets the environment of the SDK, and nothing of the machine's own is seen.
func setAWS(t *testing.T, vars map[string]string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_STS", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, vars[name])
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/credentials")
}

// Who one is comes from STS, unless DynamoDB has an endpoint of its own and STS has none.
func TestIdentity(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Form.Get("Action") != "GetCallerIdentity" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:sts::123456789012:assumed-role/billing/i-1</Arn><UserId>x</UserId><Account>123456789012</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>`)
	}))
	defer srv.Close()
	keys := map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "secret"}
	for name, c := range map[string]struct {
		rest, sts string
		want      string
	}{
		"AWS":                    {"//leases", srv.URL, "arn:aws:sts::123456789012:assumed-role/billing/i-1"},
		"both have endpoints":    {"//leases?endpoint=http://127.0.0.1:1", srv.URL, "assumed-role/billing"},
		"an endpoint of its own": {"//leases?endpoint=http://127.0.0.1:1", "", "access key AKIATEST from EnvConfigCredentials, at the endpoint http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			keys["AWS_ENDPOINT_URL_STS"] = c.sts
			setAWS(t, keys)
			d, err := dialDynamoDB(t.Context(), c.rest)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if got, err := d.opts.Identity(t.Context()); err != nil || !strings.Contains(got, c.want) || strings.Contains(got, "secret") {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// Without credentials the error says what is missing.
func TestNoCredentials(t *testing.T) {
	setAWS(t, map[string]string{"AWS_REGION": "eu-west-1"})
	_, err := openDynamoDB(t.Context(), "//leases", Options{})
	if err == nil || !strings.Contains(err.Error(), "AWS credentials") {
		t.Errorf("%v", err)
	}
}

// TestFinding_L5_CredentialsOfAWS has an end in front of DynamoDB Local, which takes all, that refuses what AWS has no more.
func TestFinding_L5_CredentialsOfAWS(t *testing.T) {
	srv := servers.DynamoDB(t)
	target, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	valid := "AKIABEFORE"
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := regexp.MustCompile(`Credential=(\w+)/`).FindStringSubmatch(r.Header.Get("Authorization"))
		mu.Lock()
		good := key != nil && key[1] == valid
		mu.Unlock()
		if good {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"The security token included in the request is invalid."}`)
	}))
	t.Cleanup(front.Close)
	setAWS(t, map[string]string{"AWS_REGION": "eu-west-1"})
	const credentials = "[default]\naws_access_key_id = AKIA%[1]s\naws_secret_access_key = secret%[1]s\n"
	file := secretIn(t, fmt.Sprintf(credentials, "BEFORE"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	text := "dynamodb://leases?endpoint=" + front.URL
	u, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	table, err := u.DynamoDB(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if _, err := dynamodb.Create(t.Context(), table.Client, "leases"); err != nil {
		t.Fatal(err)
	}
	rotation{url: text, files: map[string]string{file: fmt.Sprintf(credentials, "AFTER")}, revoke: func() {
		mu.Lock()
		defer mu.Unlock()
		valid = "AKIAAFTER"
	}}.under(t)
}
