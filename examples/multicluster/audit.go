package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
)

// policy has an API server note every write of a ConfigMap, when it came and when it was answered.
const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources: [{group: "", resources: [configmaps]}]
- level: None
`

// written is a write that an API server has accepted, by its audit log.
type written struct {
	cluster, pod, object string
	token                fence.Token
	came, answered       time.Time
}

// readAudit returns the writes of controllers that a server has accepted.
func readAudit(cluster, path string) ([]written, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []written
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, len(b)+1)
	for lines.Scan() {
		var e struct {
			UserAgent, Verb                          string
			RequestReceivedTimestamp, StageTimestamp time.Time
			ObjectRef                                struct{ Name, Namespace string }
			ResponseStatus                           struct{ Code int }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the last line, perhaps, of a server that was killed
		}
		name, ours := strings.CutPrefix(e.UserAgent, agent)
		if !ours || e.ResponseStatus.Code/100 != 2 {
			continue
		}
		w := written{cluster: cluster, object: e.ObjectRef.Name, came: e.RequestReceivedTimestamp, answered: e.StageTimestamp}
		var token string
		w.pod, token, _ = strings.Cut(name, " token/")
		if w.token, err = fence.ParseToken(token); err != nil {
			w.token = 0
		}
		all = append(all, w)
	}
	return all, lines.Err()
}

// foreign returns the writes of a side that was not active: those without a term, and those that
// came to a server after any server had answered a write of a later term. Both servers read one
// clock.
func foreign(all []written) (out []string) {
	slices.SortFunc(all, func(x, y written) int { return x.answered.Compare(y.answered) })
	type newest struct {
		at    time.Time
		token fence.Token
	}
	var tops []newest
	owners := map[fence.Token]string{}
	for _, w := range all {
		if n := len(tops); n == 0 || w.token > tops[n-1].token {
			tops = append(tops, newest{w.answered, w.token})
		}
	}
	for _, w := range all {
		// The newest term of which a write was answered before w came.
		i, _ := slices.BinarySearchFunc(tops, w.came, func(n newest, at time.Time) int { return cmp.Or(n.at.Compare(at), 1) })
		switch owner, known := owners[w.token]; {
		case w.token == 0:
			out = append(out, fmt.Sprintf("%s wrote %s in %s without a term", w.pod, w.object, w.cluster))
		case i > 0 && tops[i-1].token > w.token:
			out = append(out, fmt.Sprintf("%s wrote %s in %s under term %d, after a write of term %d", w.pod, w.object, w.cluster, w.token, tops[i-1].token))
		case known && owner != w.pod:
			out = append(out, fmt.Sprintf("%s wrote %s in %s under term %d, which is %s's", w.pod, w.object, w.cluster, w.token, owner))
		}
		owners[w.token] = w.pod
	}
	return out
}
