package mutate

// Files that seeded bugs are in.
const (
	attemptGo = "internal/protocol/attempt.go"
	namedGo   = "internal/protocol/named.go"
	nextGo    = "internal/protocol/next.go"
	claimGo   = "internal/protocol/claim.go"
	recordsGo = "internal/protocol/records.go"
	seenGo    = "internal/protocol/seen.go"
	timingGo  = "internal/protocol/timing.go"
	rosterGo  = "internal/roster/roster.go"
	sharedGo  = "lock/shared.go"
	lookGo    = "internal/protocol/look.go"
	driverGo  = "internal/drive/driver.go"
	keptGo    = "internal/drive/roster.go"
	termGo    = "internal/drive/term.go"
	ownedGo   = "internal/shardmap/rules.go"
	shardGo   = "shard/keeper.go"
	leaveGo   = "internal/protocol/leave.go"
	renewGo   = "internal/protocol/renew.go"
	latestGo  = "internal/enginekit/watcher/latest.go"
)

// Bugs are the seeded bugs, by the names of the safety rules that they take out; see package seeded
// for what those say.
var Bugs = map[string][]Edit{
	"deadline-from-sent":    {{attemptGo, "Hold.extend", "\th.Deadline = sent", "\tsent = env.Now\n\th.Deadline = sent"}},
	"deadline-from-first":   {{claimGo, "Hold.pursue", "if !h.att.Tied {", "if true {"}},
	"holder-margin":         {{timingGo, "Timing.validity", "return t.TTL -", "return t.TTL - 0*"}},
	"taker-waits-ttl":       {{seenGo, "Seen.dead", "s.Rec.TTL", "s.Rec.TTL / 2"}},
	"observed-not-written":  {{seenGo, "Seen.Note", "s.Known && sameWrite(s.Rec, rec)", "s.Known"}},
	"own-nonce":             {{attemptGo, "Hold.met", "case cur.Nonce == h.att.Rec.Nonce && h.att.Tied:", "case false:"}},
	"own-older-term":        {{claimGo, "Hold.beginClaim", "prev := h.rec.Rec", "prev := h.rec.Rec\n\tif s == Mine {\n\t\th.claimed(env, prev, env.Now)\n\t\treturn\n\t}"}},
	"nonce-not-owner":       {{nextGo, "Judge", "case r.Owner == me && slices.Contains(mine, baseNonce(r.Nonce)):", "case r.Owner == me:"}},
	"token-kept-on-release": {{recordsGo, "Freed", "Token: rec.Token,", "Token: 0,"}},
	"token-raised":          {{recordsGo, "NextToken", "next := max(prev+1, fence.Token(max(wall.UnixMilli(), 0)))", "next := max(prev, 1)"}},
	"token-over-wipe":       {{recordsGo, "NextToken", "next := max(prev+1, fence.Token(max(wall.UnixMilli(), 0)))", "next := prev + 1"}},
	"session-fenced-first":  {{nextGo, "Hold.nextWaiting", "h.begin(OpFence, Freed(h.session.Rec, WhyExpired, env.Wall, env.Nonce()))", "h.beginClaim(env, v.Standing)"}},
	"session-made-once":     {{nextGo, "Hold.nextWaiting", `if h.once && h.rec.Rec.Version != "" {`, "if false {"}},
	"conflict-is-loss":      {{attemptGo, "Hold.superseded", "case att.Op == OpRenew:\n", "case att.Op == OpRenew:\n\t\th.Term.Version = cur.Version\n\t\th.beginRenew(env)\n\tcase false:\n"}},
	"restored-is-loss": {
		{attemptGo, "Hold.superseded", `case att.Op == OpRenew && ours && cur.Intervention != "":`, "case att.Op == OpRenew && ours:"},
		{attemptGo, "Hold.wrote", `if base == "" {`, "if false {"},
		{namedGo, "Hold.same", "return cur.Token >= h.latest.Token", "return true"},
		{namedGo, "Hold.same", "return !h.latest.after(cur)", "return true"},
	},
	"release-exact-term": {{leaveGo, "Hold.overtaken", `case h.leave.To != "" || h.named:`, "case true:\n\t\th.Term = cur\n\t\th.beginLeave(env)\n\tcase false:"}},
	"late-answer-ignored": {
		{attemptGo, "Hold.Wrote", "h.Expire(env)", ""},
		{attemptGo, "Hold.Read", "h.Expire(env)", ""},
	},
	"late-claim-not-held":    {{attemptGo, "Hold.claimed", "if env.Now >= h.Deadline {", "if false {"}},
	"session-checked":        {{attemptGo, "Hold.claimed", "if env.Now >= env.Session {", "if false {"}},
	"offer-confirmed":        {{claimGo, "Hold.beginClaim", "prev := h.rec.Rec", "prev := h.rec.Rec\n\tif s == Offered {\n\t\th.claimed(env, prev, env.Now)\n\t\treturn\n\t}"}},
	"offer-under-new-token":  {{claimGo, "Hold.beginClaim", "h.begin(OpClaim,", "if s == Offered {\n\t\ttoken = prev.Token\n\t}\n\th.begin(OpClaim,"}},
	"session-looked-at":      {{nextGo, "Hold.nextTaken", `case h.rec.Rec.Session == "":`, "case true:"}},
	"mark-names-its-version": {{attemptGo, "Hold.wrote", "base := baseNonce(cur.Nonce)", "if true {\n\t\treturn cur.Owner == h.Claim.Owner && cur.Token == h.Term.Token\n\t}\n\tbase := baseNonce(cur.Nonce)"}},
	"broken-not-renewed": {
		{renewGo, "Hold.marked", "case cur.Intervention == store.InterventionBroken:", "case false:"},
		{namedGo, "Hold.take", "case cur.Intervention == store.InterventionBroken:", "case false:"},
	},
	"break-outlives-notice": {{recordsGo, "NeedsNotice", " && rec.Intervention != store.InterventionBroken", ""}},
	"outsider-ends-term":    {{lookGo, "Ousted", `case rec.Version == "":`, "case true:\n\t\treturn NotLost, nil\n\tcase rec.Version == \"\":"}},
	"notice-told-again":     {{namedGo, "Hold.take", "h.Notice = h.Left(cur.Data); h.Notice == nil", "h.Notice = h.Left(cur.Data); true"}},
	"request-within-hold":   {{renewGo, "Hold.nextHeld", "act.Until = h.Deadline", "act.Until = env.Now.Add(h.Timing.Answer())"}},
	"first-copy-counts":     {{renewGo, "Hold.Late", "h.Failing = true", "h.Failing, h.att.Sent = true, env.Now"}},
	"copy-by-its-nonce":     {{attemptGo, "Hold.met", "case cur.Nonce == h.att.Rec.Nonce && h.att.Tied:", "case (cur.Nonce == h.att.Rec.Nonce || h.Failing && h.att.Op == OpRenew && cur.Owner != \"\") && h.att.Tied:"}},

	"follower-judges-session": {{nextGo, "Hold.Verdict", "return Judge(", "if h.Follow {\n\t\ts := h.session\n\t\ts.Since = h.rec.Since\n\t\treturn Judge(h.rec, s, h.Claim.Owner, h.mine, now)\n\t}\n\treturn Judge("}},
	"follower-wakes":          {{nextGo, "Hold.nextTaken", "act.Also, act.AlsoVersion =", "act.Until = clock.NoDeadline\n\t\tact.Also, act.AlsoVersion ="}},
	"follower-hears-both":     {{nextGo, "Hold.nextTaken", "act.Also, act.AlsoVersion =", "act.Key, act.Version ="}},

	"shares-within-limit": {
		{rosterGo, "Parse", "if r.Free() < 0 ||", "if"},
		{rosterGo, "Roster.fits", "weight <= r.Free()", "weight <= r.Free()+1"},
	},
	"writer-excludes-readers": {
		{rosterGo, "Parse", "if r.Free() < 0 ||", "if"},
		{rosterGo, "Roster.fits", "weight <= r.Free()", "weight <= r.Free() || r.Kind == RW && weight == r.Limit"},
	},
	"share-of-a-dead-session": {{sharedGo, "attempt.pursue", "return a.over[session]", "return true"}},
	"dead-share-taken":        {{sharedGo, "attempt.pursue", "return a.over[session]", "return false"}},

	"shard-closed-first": {{"shard/assign.go", "assigner.look", "a.watch.Silent(m.Session) {", "true {\n\t\t\tover[m.Session] = true"}},
	"shard-confirmed":    {{shardGo, "keeper.load", "store.Confirm(", "store.Load("}},
	"shard-push-agrees": {
		{shardGo, "keeper.agreed", "if k.held[termID(e)] == nil {", "if false {"},
		{shardGo, "keeper.agreed", "if owned != len(k.held) {", "if false {"},
	},
	"shard-push-durable":      {{shardGo, "keeper.agreed", " && store.Describe(k.t.o.m.Store()).Read == store.ReadDurable", ""}},
	"shard-push-newer":        {{shardGo, "keeper.agreed", "c.Token > k.token && ", ""}},
	"shard-drained-first":     {{shardGo, "keeper.change", "if !k.drained(e) {", "if !k.drained(e) && (e.Owner != k.t.key || e.Next == \"\") {"}},
	"shard-taken-when-closed": {{"shard/picture.go", "picture.move", "return p.closed[session]", "return true"}},
	"shard-owner-is-session":  {{shardGo, "keeper.apply", "case e.Owner == k.t.key:", `case e.Owner != "" && (shardmap.Member{Session: e.Owner}).Owner() == (shardmap.Member{Session: k.t.key}).Owner():`}},
	"shard-stays-stopped":     {{shardGo, "keeper.write", "case err != nil:", "case err != nil:\n\t\tk.mu.Lock()\n\t\tfor id, s := range k.held {\n\t\t\tif s.phase == ended {\n\t\t\t\tdelete(k.held, id)\n\t\t\t}\n\t\t}\n\t\tk.mu.Unlock()"}},
	"shard-while-valid":       {{"shard/slice.go", "Slice.Check", "return s.s.Check()", "return nil"}},
	"shard-move-raises":       {{ownedGo, "Chunk.Give", "token, err := c.raise(wall)", "token, err := max(s.Token, 1), error(nil)\n\tc.Token = max(c.Token, 1)"}},
	"shard-split-raises":      {{ownedGo, "Chunk.split", "upper, err := c.raise(wall)", "upper, err := s.Token, error(nil)"}},
	"shard-merge-raises":      {{ownedGo, "Chunk.merge", "token, err := c.raise(wall)", "token, err := s.Token, error(nil)"}},

	"second-key-told":       {{attemptGo, "Hold.Tell", "rec.Key == act.Also:", "false:"}},
	"push-after-all-shown":  {{latestGo, "Latest.Counts", "at < max(l.At, l.Shown)", "at < l.At"}},
	"stop-before-release":   {{driverGo, "Leave", "p.Stop()", ""}},
	"session-lease-settled": {{driverGo, "Driver.Settle", "d.tried == finally:", "d.tried == finally, kept:"}},
	"end-told-once":         {{termGo, "Term.End", "!t.ended.Swap(true)", "!t.ended.Swap(true) || true"}},
	"over-stays-over":       {{termGo, "Term.extend", "return t.until.CompareAndSwap(int64(from), int64(to))", "t.until.Store(int64(to))\n\treturn true"}},
	"session-loss-told":     {{keptGo, "Roster.Close", "ended = append(ended, r.members[key])", "_ = key"}},
	"notice-outlives-claim": {{keptGo, "Roster.Told", "if !ok || l.Token() < token {", "if false {"}},
	"session-told-of-break": {{keptGo, "Notify", "if !protocol.NeedsNotice(session, rec.Owner) {", "if true {"}},

	// What the simulated world does in the place of guards, networks and stores.
	"guard-remembers":      {{"internal/proof/sim/work.go", "World.write", "mark, err := g.mark.Admit", "g.mark.Token, g.mark.Holder = 0, \"\"\n\t\tmark, err := g.mark.Admit"}},
	"refused-copy-unknown": {{"internal/proof/sim/network.go", "World.transmit", "if copies > 1 {", "if false {"}},
	"settled-by-replica":   {{"internal/proof/sim/replica.go", "server.inDoubt", "return ok &&", "return false && ok &&"}},
	"conditional-write": {
		{"internal/proof/sim/server.go", "server.put", "case !ok && rec", "case true:\n\tcase !ok && rec"},
		{"internal/proof/sim/model/steps.go", "world.put", "case i < 0 &&", "case i >= 0:\n\tcase i < 0 &&"},
	},
}
