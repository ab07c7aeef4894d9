package model

import "github.com/leasehold/leasehold/internal/protocol"

// Scopes are the small worlds that are searched. Each leaves out what the others show, so that it
// reaches deep.
var Scopes = []Scope{
	{Name: "pauses", Holders: 2, Writes: 2, Wants: 1, Stays: true},
	{Name: "contention", Prompt: true, Holders: 2, Writes: 4, Wants: 2, Twice: 1},
	{Name: "rates", Prompt: true, Stays: true, Holders: 2, Writes: 4, Wants: 1, Rates: []int{90, 110}},
	{Name: "refusals", Prompt: true, Stays: true, Holders: 2, Writes: 4, Wants: 1, Rejects: 2},
	{Name: "slow", Stays: true, Holders: 2, Writes: 3, Wants: 1, Copies: 2},
	{Name: "slow, prompt", Prompt: true, Holders: 2, Writes: 4, Wants: 1, Copies: 2, Rejects: 1},
	{Name: "session", Prompt: true, Stays: true, Holders: 2, Session: true, Writes: 5, Wants: 1, Crashes: 1},
	{Name: "session, broken", Prompt: true, Stays: true, Holders: 2, Session: true, Writes: 6, Wants: 1, Breaks: 1},
	{Name: "session, abandoned", Prompt: true, Stays: true, Orphan: true, Holders: 2, Writes: 3, Wants: 1},
	{Name: "session, followed", Prompt: true, Stays: true, Holders: 2, Session: true, Follow: true, Writes: 5, Wants: 1, Crashes: 1},
	{Name: "session, abandoned, followed", Prompt: true, Stays: true, Orphan: true, Holders: 2, Follow: true, Writes: 3, Wants: 1},
	{Name: "broken, handed over", Prompt: true, Stays: true, Holders: 2, Writes: 5, Wants: 1, Handover: true, Breaks: 1},
	{Name: "clones", Prompt: true, Stays: true, Holders: 2, Writes: 4, Wants: 1, Clones: 1},
	{Name: "patience", Prompt: true, Stays: true, Holders: 2, Writes: 4, Wants: 1, Patient: true},
	{Name: "patience, abandoned", Prompt: true, Stays: true, Orphan: true, Holders: 2, Writes: 4, Wants: 1, Patient: true},
	{Name: "three", Prompt: true, Stays: true, Holders: 3, Writes: 3, Wants: 1},
}

// Expected are the transitions that the scopes have to take between them: what each outcome can do
// to a hold. One that is never taken means that the check doesn't look where it says, or that the
// rules have changed.
var Expected = []Transition{
	{protocol.Waiting, protocol.OpNone, protocol.Read, "done", protocol.Waiting},
	{protocol.Waiting, protocol.OpNone, protocol.Read, "unknown", protocol.Waiting},
	{protocol.Waiting, protocol.OpNone, protocol.Read, "refused", protocol.Waiting},
	{protocol.Waiting, protocol.OpClaim, protocol.Write, "done", protocol.Held},
	{protocol.Waiting, protocol.OpClaim, protocol.Write, "done", protocol.Waiting}, // too late
	// The session is over.
	{protocol.Waiting, protocol.OpClaim, protocol.Write, "done", protocol.Lost},
	{protocol.Waiting, protocol.OpClaim, protocol.Write, "conflict", protocol.Waiting},
	// With its own nonce.
	{protocol.Waiting, protocol.OpClaim, protocol.Write, "conflict", protocol.Held},
	{protocol.Waiting, protocol.OpClaim, protocol.Write, "unknown", protocol.Waiting},
	{protocol.Waiting, protocol.OpClaim, protocol.Write, "refused", protocol.Waiting},
	{protocol.Waiting, protocol.OpClaim, protocol.Read, "done", protocol.Held},
	{protocol.Waiting, protocol.OpClaim, protocol.Read, "done", protocol.Waiting},
	{protocol.Waiting, protocol.OpClaim, protocol.Read, "unknown", protocol.Waiting},
	{protocol.Waiting, protocol.OpFence, protocol.Write, "done", protocol.Waiting},
	{protocol.Waiting, protocol.OpFence, protocol.Write, "conflict", protocol.Waiting},
	{protocol.Waiting, protocol.OpFence, protocol.Write, "unknown", protocol.Waiting},
	{protocol.Waiting, protocol.OpVacate, protocol.Write, "done", protocol.Waiting},
	{protocol.Waiting, protocol.OpVacate, protocol.Write, "conflict", protocol.Waiting},
	{protocol.Waiting, protocol.OpVacate, protocol.Write, "unknown", protocol.Waiting},
	{protocol.Waiting, protocol.OpVacate, protocol.Read, "done", protocol.Waiting},
	{protocol.Held, protocol.OpRenew, protocol.Write, "done", protocol.Held},
	{protocol.Held, protocol.OpRenew, protocol.Write, "done", protocol.Lost}, // too late
	{protocol.Held, protocol.OpRenew, protocol.Write, "conflict", protocol.Held},
	{protocol.Held, protocol.OpRenew, protocol.Write, "conflict", protocol.Lost},
	{protocol.Held, protocol.OpRenew, protocol.Write, "unknown", protocol.Held},
	{protocol.Held, protocol.OpRenew, protocol.Write, "unknown", protocol.Lost},
	{protocol.Held, protocol.OpRenew, protocol.Write, "refused", protocol.Held},
	{protocol.Held, protocol.OpRenew, protocol.Read, "done", protocol.Held},
	{protocol.Held, protocol.OpRenew, protocol.Read, "done", protocol.Lost},
	{protocol.Held, protocol.OpRenew, protocol.Read, "unknown", protocol.Lost},
	{protocol.Leaving, protocol.OpLeave, protocol.Write, "done", protocol.Ended},
	{protocol.Leaving, protocol.OpLeave, protocol.Write, "conflict", protocol.Leaving},
	{protocol.Leaving, protocol.OpLeave, protocol.Write, "conflict", protocol.Ended},
	{protocol.Leaving, protocol.OpLeave, protocol.Write, "unknown", protocol.Leaving},
	{protocol.Leaving, protocol.OpLeave, protocol.Read, "done", protocol.Leaving},
	{protocol.Leaving, protocol.OpLeave, protocol.Read, "done", protocol.Ended},
	{protocol.Leaving, protocol.OpLeave, protocol.Read, "unknown", protocol.Leaving},
}

// requests are what a hold asks for, and outcomes what it can be told of that.
var (
	requests = []Transition{
		{From: protocol.Waiting, Op: protocol.OpNone, Kind: protocol.Read}, {From: protocol.Waiting, Op: protocol.OpClaim, Kind: protocol.Write},
		{From: protocol.Waiting, Op: protocol.OpClaim, Kind: protocol.Read}, {From: protocol.Waiting, Op: protocol.OpFence, Kind: protocol.Write},
		{From: protocol.Waiting, Op: protocol.OpVacate, Kind: protocol.Write}, {From: protocol.Waiting, Op: protocol.OpVacate, Kind: protocol.Read},
		{From: protocol.Held, Op: protocol.OpRenew, Kind: protocol.Write}, {From: protocol.Held, Op: protocol.OpRenew, Kind: protocol.Read},
		{From: protocol.Leaving, Op: protocol.OpLeave, Kind: protocol.Write}, {From: protocol.Leaving, Op: protocol.OpLeave, Kind: protocol.Read},
	}
	outcomes = map[protocol.Kind][]string{
		protocol.Read:  {"done", "unknown", "refused"},
		protocol.Write: {"done", "conflict", "not found", "unknown", "refused"},
	}
	leftOut = map[string]string{
		"not found": "nothing deletes a record here; the simulator's stores are wiped",
		"refused":   "the store refuses in the world called refusals only",
	}
)
