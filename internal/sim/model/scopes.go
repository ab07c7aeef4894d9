package model

import "github.com/leasehold/leasehold/internal/rules"

// Scopes are the small worlds that are searched. Each leaves out what the others show, so that it reaches deep.
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

// Expected are the transitions that the scopes have to take between them: what each outcome can do to a hold. One that is
// never taken means that the check doesn't look where it says, or that the rules have changed.
var Expected = []Transition{
	{rules.Waiting, rules.OpNone, rules.Read, "done", rules.Waiting},
	{rules.Waiting, rules.OpNone, rules.Read, "unknown", rules.Waiting},
	{rules.Waiting, rules.OpNone, rules.Read, "refused", rules.Waiting},
	{rules.Waiting, rules.OpClaim, rules.Write, "done", rules.Held},
	{rules.Waiting, rules.OpClaim, rules.Write, "done", rules.Waiting}, // too late
	{rules.Waiting, rules.OpClaim, rules.Write, "done", rules.Lost},    // the session is over
	{rules.Waiting, rules.OpClaim, rules.Write, "conflict", rules.Waiting},
	{rules.Waiting, rules.OpClaim, rules.Write, "conflict", rules.Held}, // with its own nonce
	{rules.Waiting, rules.OpClaim, rules.Write, "unknown", rules.Waiting},
	{rules.Waiting, rules.OpClaim, rules.Write, "refused", rules.Waiting},
	{rules.Waiting, rules.OpClaim, rules.Read, "done", rules.Held},
	{rules.Waiting, rules.OpClaim, rules.Read, "done", rules.Waiting},
	{rules.Waiting, rules.OpClaim, rules.Read, "unknown", rules.Waiting},
	{rules.Waiting, rules.OpFence, rules.Write, "done", rules.Waiting},
	{rules.Waiting, rules.OpFence, rules.Write, "conflict", rules.Waiting},
	{rules.Waiting, rules.OpFence, rules.Write, "unknown", rules.Waiting},
	{rules.Waiting, rules.OpVacate, rules.Write, "done", rules.Waiting},
	{rules.Waiting, rules.OpVacate, rules.Write, "conflict", rules.Waiting},
	{rules.Waiting, rules.OpVacate, rules.Write, "unknown", rules.Waiting},
	{rules.Waiting, rules.OpVacate, rules.Read, "done", rules.Waiting},
	{rules.Held, rules.OpRenew, rules.Write, "done", rules.Held},
	{rules.Held, rules.OpRenew, rules.Write, "done", rules.Lost}, // too late
	{rules.Held, rules.OpRenew, rules.Write, "conflict", rules.Held},
	{rules.Held, rules.OpRenew, rules.Write, "conflict", rules.Lost},
	{rules.Held, rules.OpRenew, rules.Write, "unknown", rules.Held},
	{rules.Held, rules.OpRenew, rules.Write, "unknown", rules.Lost},
	{rules.Held, rules.OpRenew, rules.Write, "refused", rules.Held},
	{rules.Held, rules.OpRenew, rules.Read, "done", rules.Held},
	{rules.Held, rules.OpRenew, rules.Read, "done", rules.Lost},
	{rules.Held, rules.OpRenew, rules.Read, "unknown", rules.Lost},
	{rules.Leaving, rules.OpLeave, rules.Write, "done", rules.Ended},
	{rules.Leaving, rules.OpLeave, rules.Write, "conflict", rules.Leaving},
	{rules.Leaving, rules.OpLeave, rules.Write, "conflict", rules.Ended},
	{rules.Leaving, rules.OpLeave, rules.Write, "unknown", rules.Leaving},
	{rules.Leaving, rules.OpLeave, rules.Read, "done", rules.Leaving},
	{rules.Leaving, rules.OpLeave, rules.Read, "done", rules.Ended},
	{rules.Leaving, rules.OpLeave, rules.Read, "unknown", rules.Leaving},
}

// requests are what a hold asks for, and outcomes what it can be told of that.
var (
	requests = []Transition{
		{From: rules.Waiting, Op: rules.OpNone, Kind: rules.Read}, {From: rules.Waiting, Op: rules.OpClaim, Kind: rules.Write},
		{From: rules.Waiting, Op: rules.OpClaim, Kind: rules.Read}, {From: rules.Waiting, Op: rules.OpFence, Kind: rules.Write},
		{From: rules.Waiting, Op: rules.OpVacate, Kind: rules.Write}, {From: rules.Waiting, Op: rules.OpVacate, Kind: rules.Read},
		{From: rules.Held, Op: rules.OpRenew, Kind: rules.Write}, {From: rules.Held, Op: rules.OpRenew, Kind: rules.Read},
		{From: rules.Leaving, Op: rules.OpLeave, Kind: rules.Write}, {From: rules.Leaving, Op: rules.OpLeave, Kind: rules.Read},
	}
	outcomes = map[rules.Kind][]string{
		rules.Read:  {"done", "unknown", "refused"},
		rules.Write: {"done", "conflict", "not found", "unknown", "refused"},
	}
	leftOut = map[string]string{
		"not found": "nothing deletes a record here; the simulator's stores are wiped",
		"refused":   "the store refuses in the world called refusals only",
	}
)
