package admiral

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The prefix of service addresses: their first two octets.
const (
	DefaultPrefix = "240.0"
	AutoPrefix    = "auto" // picks one that no other deployment has
)

// prefixKeys begins the keys under which prefixes are kept.
const prefixKeys = "se_ip_prefix/"

// The prefixes that auto picks from: 240.0 to 255.255.
const (
	firstOctet = 240
	lastOctet  = 255
)

// PrefixTakenError reports that another deployment has the prefix.
type PrefixTakenError struct {
	Prefix string
	By     string // the other deployment
	Pod    string // of it, that started last
	Token  uint64 // of its hold
}

func (e *PrefixTakenError) Error() string {
	return fmt.Sprintf("se_ip_prefix %s belongs to the deployment %q (its pod %s): two deployments with one prefix hand out the same "+
		"addresses; choose another one, or %s. If that deployment is gone for good: leasehold release %s --token %d",
		e.Prefix, e.By, e.Pod, AutoPrefix, prefixKeys+e.Prefix, e.Token)
}

// PrefixChangedError reports that the deployment has another prefix, whose addresses are in use.
type PrefixChangedError struct {
	Prefix     string // that was asked for
	Deployment string
	Has        string
	Token      uint64 // of its hold
}

func (e *PrefixChangedError) Error() string {
	return fmt.Sprintf("se_ip_prefix %s: the deployment %q has %s, and addresses made with it are in use: name that one, or %s. To change it, when no pod "+
		"of the deployment runs: leasehold release %s --token %d", e.Prefix, e.Deployment, e.Has, AutoPrefix, prefixKeys+e.Has, e.Token)
}

// ClaimPrefix claims prefix for deployment, which all its pods have in common (the name of its
// lease, for instance), and returns it. [AutoPrefix] keeps the prefix that the deployment has, or
// picks the lowest free one. A claim doesn't expire, even when no pod runs, because the addresses
// made with it stay in use. Another deployment's prefix is a *[PrefixTakenError], and another one
// than the deployment has a *[PrefixChangedError].
//
// ClaimPrefix blocks until the store has answered or ctx is done. After an unknown outcome it can
// be called again.
func ClaimPrefix(ctx context.Context, st store.Store, prefix, deployment, pod string) (string, error) {
	if err := driver.CheckKey(deployment); err != nil || len(deployment) > store.MaxKey-len(prefixKeys) {
		return "", fmt.Errorf("deployment %.40q: want 1 to %d printable characters", deployment, store.MaxKey-len(prefixKeys))
	}
	if err := CheckPrefix(prefix); err != nil {
		return "", err
	}
	if prefix == AutoPrefix {
		return pickPrefix(ctx, st, deployment, pod)
	}
	rec, err := store.Load(ctx, st, prefixKeys+prefix)
	if err != nil {
		return "", fmt.Errorf("se_ip_prefix %s: %w", prefix, err)
	}
	if rec.Owner != "" { // this deployment's, or another's
		return prefix, claimPrefix(ctx, st, rec, deployment, pod)
	}
	// Before, so that a pod with a wrong flag changes nothing; and after, since another pod may
	// have claimed another prefix meanwhile: whoever sees that gives its own back.
	if _, err := onlyPrefix(ctx, st, prefix, deployment); err != nil {
		return "", err
	}
	if err := claimPrefix(ctx, st, rec, deployment, pod); err != nil {
		return "", err
	}
	if mine, err := onlyPrefix(ctx, st, prefix, deployment); err != nil {
		return "", errors.Join(err, unclaim(ctx, st, mine, pod))
	}
	return prefix, nil
}

// onlyPrefix returns an error if the deployment has a prefix besides this one, and the record of
// this one.
func onlyPrefix(ctx context.Context, st store.Store, prefix, deployment string) (mine store.Record, err error) {
	for rec, listErr := range st.List(ctx, prefixKeys) {
		if listErr != nil {
			return store.Record{}, fmt.Errorf("se_ip_prefix %s: %w", prefix, listErr)
		}
		switch has := strings.TrimPrefix(rec.Key, prefixKeys); {
		case rec.Owner != deployment:
		case has == prefix:
			mine = rec
		default:
			err = &PrefixChangedError{Prefix: prefix, Deployment: deployment, Has: has, Token: uint64(rec.Token)}
		}
	}
	return mine, err
}

// unclaim gives a prefix back that was claimed a moment ago.
func unclaim(ctx context.Context, st store.Store, mine store.Record, pod string) error {
	if mine.Owner == "" {
		return nil
	}
	_, err := drive.Free(ctx, st, clock.System(), mine.Key, drive.EndTerm{Token: mine.Token, By: pod, Reason: "the deployment has another prefix"})
	return err
}

// CheckPrefix returns an error unless prefix is [AutoPrefix], or two octets in decimal without
// leading zeros, 240.0 to 255.255: the addresses that RFC 1112 reserves, which no machine has.
// 240.0 and 240.00 would be the same network.
func CheckPrefix(prefix string) error {
	if prefix == AutoPrefix {
		return nil
	}
	first, second, ok := strings.Cut(prefix, ".")
	if !ok || !octet(first) || !octet(second) {
		return fmt.Errorf("se_ip_prefix %q: want the first two octets of an address, such as %s, or %s", prefix, DefaultPrefix, AutoPrefix)
	}
	if n, err := strconv.Atoi(first); err != nil || n < firstOctet {
		return fmt.Errorf("se_ip_prefix %s: machines may have such addresses, or listen to them: want %d.0 to %d.255, which are reserved, or %s",
			prefix, firstOctet, lastOctet, AutoPrefix)
	}
	return nil
}

func octet(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0 && n <= 255 && strconv.Itoa(n) == s
}

// claimPrefix takes rec for the deployment, or renews that it has it.
func claimPrefix(ctx context.Context, st store.Store, rec store.Record, deployment, pod string) error {
	for {
		prefix := strings.TrimPrefix(rec.Key, prefixKeys)
		if rec.Owner != "" && rec.Owner != deployment {
			return &PrefixTakenError{Prefix: prefix, By: rec.Owner, Pod: rec.Info[pairs.InfoPod], Token: uint64(rec.Token)}
		}
		if rec.Owner == deployment && rec.Info[pairs.InfoPod] == pod {
			return nil
		}
		wall := clock.System().Wall()
		next := rec
		next.Info = map[string]string{pairs.InfoPod: pod}
		next.Nonce = rand.Text()
		if rec.Owner == "" {
			token, err := protocol.NextToken(rec.Token, wall)
			if err != nil {
				return fmt.Errorf("se_ip_prefix %s: %w", prefix, err)
			}
			claim := protocol.Claim{Owner: deployment, TTL: store.MaxTTL, Info: next.Info}
			next = protocol.Claimed(rec, claim, token, protocol.WhyReleased, wall, next.Nonce)
		}
		_, err := st.Put(ctx, next)
		var conflict *store.ConflictError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &conflict):
			rec = conflict.Current
		case errors.Is(err, store.ErrNotFound):
			rec = store.Record{Key: rec.Key}
		default:
			return fmt.Errorf("se_ip_prefix %s: %w", prefix, err)
		}
	}
}

// pickPrefix keeps the deployment's prefix, or takes the lowest free one.
func pickPrefix(ctx context.Context, st store.Store, deployment, pod string) (string, error) {
	taken := map[string]store.Record{}
	for rec, err := range st.List(ctx, prefixKeys) {
		if err != nil {
			return "", fmt.Errorf("se_ip_prefix %s: %w", AutoPrefix, err)
		}
		taken[rec.Key] = rec
		if rec.Owner == deployment {
			return strings.TrimPrefix(rec.Key, prefixKeys), claimPrefix(ctx, st, rec, deployment, pod)
		}
	}
	for n := range (lastOctet - firstOctet + 1) * 256 {
		prefix := fmt.Sprintf("%d.%d", firstOctet+n/256, n%256)
		rec, known := taken[prefixKeys+prefix]
		if known && rec.Owner != "" {
			continue
		}
		if !known {
			rec = store.Record{Key: prefixKeys + prefix}
		}
		err := claimPrefix(ctx, st, rec, deployment, pod)
		if other := new(PrefixTakenError); errors.As(err, &other) {
			continue // meanwhile
		}
		return prefix, err
	}
	return "", fmt.Errorf("se_ip_prefix %s: all prefixes from %d.0 to %d.255 belong to other deployments; release those that are gone, or name one", AutoPrefix, firstOctet, lastOctet)
}
