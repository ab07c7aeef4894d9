package open

import (
	"os"
	"strings"
	"testing"
)

// The page on stores tells of every scheme and every parameter.
func TestPageIsComplete(t *testing.T) {
	b, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Schemes() {
		if !strings.Contains(string(b), "`"+s.Name+":") {
			t.Errorf("docs/stores.md doesn't mention the scheme %s", s.Name)
		}
	}
	params := append(neighbourParams(), natsParams...)
	params = append(params, redisParams...)
	params = append(params, paramTLS, paramCA, paramCert, paramKey, paramServerName, paramDatacenter, paramToken, paramTokenFile, paramNamespace,
		paramPartition, paramAuth, paramSessionTimeout, paramContext, paramKubeconfig, paramOwner, paramTable, paramAge, paramNotify,
		paramRegion, paramProfile, paramEndpoint, paramHomeRegion, paramServerClock, paramPoll, paramUnchecked)
	for _, p := range params {
		if !strings.Contains(string(b), "`"+p+"`") && !strings.Contains(string(b), "`"+p+"=") && !strings.Contains(string(b), "`?"+p+"=") {
			t.Errorf("docs/stores.md doesn't mention the parameter %s", p)
		}
	}
}
