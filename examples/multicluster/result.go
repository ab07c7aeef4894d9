package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/fence"
)

// moment is when a fault was made, and the term that it hit.
type moment struct {
	fault, mode string
	token       fence.Token
	at          time.Time
}

// result is what the API servers say at the end.
type result struct {
	faults []moment
	// By fault: until the first write of a later term was accepted.
	took      map[string][]time.Duration
	writes    int
	terms     int
	foreign   []string
	addresses int
	clashes   []string // addresses that two services had, or that changed
}

func (r *result) good() bool {
	return len(r.foreign) == 0 && len(r.clashes) == 0 && r.writes > 0 && r.addresses > 0
}

func (r *result) show(w io.Writer) {
	fmt.Fprintf(w, "\n%-26s %5s %8s %8s\n", "until the other side wrote", "n", "p50", "max")
	for _, f := range allFaults {
		if all := slices.Sorted(slices.Values(r.took[f.name])); len(all) > 0 {
			fmt.Fprintf(w, "%-26s %5d %7.2fs %7.2fs\n", f.name, len(all), all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
		}
	}
	fmt.Fprintf(w, "\n%d faults, %d terms. The API servers accepted %d writes, %d of a side that was not active.\n", len(r.faults), r.terms, r.writes, len(r.foreign))
	fmt.Fprintf(w, "%d services have an address; %d of them clashed or changed.\n", r.addresses, len(r.clashes))
	for _, text := range append(r.foreign, r.clashes...) {
		fmt.Fprintln(w, "  "+text)
	}
}

// checkAddresses sees that each address is one service's, in both clusters, and stays.
func (p *play) checkAddresses(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	hosts := map[string]string{} // by address
	for host, address := range p.given {
		hosts[address] = host
	}
	for _, c := range p.w.clusters {
		list, err := c.client.CoreV1().ConfigMaps(entries).List(ctx, metav1.ListOptions{LabelSelector: "entry=true"})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			host, address := e.Data["host"], e.Data["address"]
			switch was, known := p.given[host]; {
			case known && was != address:
				p.result.clashes = append(p.result.clashes, fmt.Sprintf("%s had %s, and has %s in %s", host, was, address, c.name))
			case hosts[address] != "" && hosts[address] != host:
				p.result.clashes = append(p.result.clashes, fmt.Sprintf("%s and %s have %s", host, hosts[address], address))
			}
			p.given[host], hosts[address] = address, host
		}
	}
	p.result.addresses = len(p.given)
	return nil
}

// judge reads what the API servers have noted.
func (p *play) judge() error {
	var all []written
	for _, c := range p.w.clusters {
		writes, err := readAudit(c.name, c.audit)
		if err != nil {
			return err
		}
		all = append(all, writes...)
	}
	r := &p.result
	r.writes, r.foreign, r.took = len(all), foreign(all), map[string][]time.Duration{}
	terms := map[fence.Token]bool{}
	for _, w := range all {
		terms[w.token] = true
	}
	r.terms = len(terms)
	for _, f := range r.faults {
		for _, w := range all { // in the order of the answers
			if w.token > f.token {
				r.took[f.fault] = append(r.took[f.fault], w.answered.Sub(f.at))
				break
			}
		}
	}
	return nil
}
