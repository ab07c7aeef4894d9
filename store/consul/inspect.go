package consul

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/enginekit/inspect"
	"github.com/leasehold/leasehold/store/driver"
)

// inspectWithin bounds the trial of what a lease does.
const inspectWithin = 10 * time.Second

// Inspect implements [driver.Inspector]. It writes, reads and deletes a record of its own, whose
// key begins with ".doctor/".
func (s *Store) Inspect(ctx context.Context) []driver.Finding {
	servers := s.inspectServers(ctx)
	if servers.Status == driver.StatusFail {
		return []driver.Finding{servers}
	}
	return append([]driver.Finding{servers, s.inspectAgent(ctx), s.inspectToken(ctx)}, s.inspectWrites(ctx)...)
}

// inspectServers says how many servers there are, and whether one of them leads.
func (s *Store) inspectServers(ctx context.Context) driver.Finding {
	f := driver.Finding{What: "servers", Status: driver.StatusOK}
	leader, err := s.client.Status().LeaderWithQueryOptions(s.query(ctx, 0, 0))
	if err != nil {
		f.Status, f.Detail = driver.StatusFail, s.failed(ctx, err).Error()
		f.Advice = "start a Consul agent, or correct its address"
		return f
	}
	if leader == "" {
		f.Status, f.Detail = driver.StatusFail, "there is no leader"
		f.Advice = "a majority of the datacenter's servers has to be up and to reach one another"
		return f
	}
	peers, err := s.client.Status().PeersWithQueryOptions(s.query(ctx, 0, 0))
	if err != nil {
		f.Status, f.Detail = driver.StatusWarn, s.failed(ctx, err).Error()
		return f
	}
	f.Detail = fmt.Sprintf("%d, led by %s", len(peers), leader)
	if len(peers) < 3 {
		f.Status, f.Advice = driver.StatusWarn, "no lease can be renewed when one of them is down: run three or five"
	}
	return f
}

// inspectAgent says which agent answers, of what datacenter and version.
func (s *Store) inspectAgent(ctx context.Context) driver.Finding {
	f := driver.Finding{What: "agent", Status: driver.StatusOK}
	var self struct {
		Config struct{ Datacenter, NodeName, Version string }
	}
	if _, err := s.client.Raw().Query("/v1/agent/self", &self, s.query(ctx, 0, 0)); err != nil {
		f.Detail = "it doesn't tell its version: " + err.Error()
		f.Advice = "to see it here, give the token a policy with agent_prefix \"\" { policy = \"read\" }"
		return f
	}
	f.Detail = fmt.Sprintf("%s in datacenter %s, version %s", self.Config.NodeName, self.Config.Datacenter, self.Config.Version)
	return f
}

// inspectToken says who Consul takes us for.
func (s *Store) inspectToken(ctx context.Context) driver.Finding {
	f := driver.Finding{What: "token", Status: driver.StatusOK}
	token, _, err := s.client.ACL().TokenReadSelf(s.query(ctx, 0, 0))
	switch {
	case err == nil:
		names := []string{}
		for _, p := range token.Policies {
			names = append(names, p.Name)
		}
		f.Detail = fmt.Sprintf("%s (%s), policies: %s", token.AccessorID, token.Description, strings.Join(names, ", "))
	case strings.Contains(err.Error(), "ACL support disabled"):
		f.Status, f.Detail = driver.StatusWarn, "Consul asks for none: anybody who reaches it may change its leases"
		f.Advice = "enable ACLs with default_policy \"deny\""
	default:
		f.Status, f.Detail = driver.StatusWarn, s.failed(ctx, err).Error()
	}
	return f
}

// inspectWrites tries what a lease does.
func (s *Store) inspectWrites(ctx context.Context) []driver.Finding {
	return inspect.Trial{
		Store: s, Within: inspectWithin, Reads: "reads of the consistent mode", List: true,
		Advice: fmt.Sprintf("give the token a policy with key_prefix %q { policy = \"write\" }", s.prefix),
	}.Run(ctx)
}
