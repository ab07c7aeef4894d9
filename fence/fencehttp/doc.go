// Package fencehttp carries sequencers over HTTP and refuses the requests of earlier terms.
//
// At the resource:
//
//	http.Handle("/", fencehttp.Handler(guard, api, fencehttp.Options{
//		Name: func(*http.Request) string { return "billing" }, // the lease that guards it
//	}))
//
// At the holder, for every request of a client:
//
//	client := &http.Client{Transport: fencehttp.Transport(nil, func() (string, error) { return seq.String(), l.Check() })}
//
// A request that is refused gets 412 Precondition Failed and JSON:
//
//	{"error":"stale_token","message":"…","name":"billing","got":41,"current":42,"holder":"web-2/17/abc"}
//
// The transport turns such an answer into the *[fence.StaleError] that the guard returned. So a
// former holder learns that it has lost the lease. Other refusals have the fields error and
// message:
//
//	428 sequencer_missing
//	400 sequencer_invalid
//	403 sequencer_forged
//	403 sequencer_other_name
//	503 guard_unavailable     the guard can't tell
package fencehttp
