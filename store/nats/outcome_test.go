package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestRefused(t *testing.T) {
	api := func(code jetstream.ErrorCode) error {
		return fmt.Errorf("nats: %w", &jetstream.APIError{Code: 400, ErrorCode: code})
	}
	for _, err := range []error{
		natsgo.ErrNoResponders, jetstream.ErrNoStreamResponse, natsgo.ErrMaxPayload, natsgo.ErrReconnectBufExceeded,
		api(jetstream.JSErrCodeStreamMessageExceedsMaximum), api(jetstream.JSErrCodeStreamNotFound), api(codeSealed), api(codeResources),
	} {
		if !refused(err) {
			t.Errorf("%v counts as perhaps done", err)
		}
	}
	const storeFailed jetstream.ErrorCode = 10077
	for _, err := range []error{
		context.Canceled, context.DeadlineExceeded, errNoAnswer, natsgo.ErrTimeout, natsgo.ErrConnectionClosed, natsgo.ErrDisconnected,
		jetstream.ErrInvalidJSAck, api(storeFailed), errors.New("EOF"),
	} {
		if refused(err) {
			t.Errorf("%v counts as not done", err)
		}
	}
}

// What is sent without a connection would be kept by the client and arrive later: so nothing is, and it is not done.
func TestNothingIsSentLater(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	js := dial(t, srv.Addr)
	bucket := newBucket(t, js, 1)
	s, direct := open(t, dial(t, network.Addr), bucket), open(t, js, bucket)
	rec := storetest.MustPut(t, s, held("k", 1))
	network.Refuse()
	eventually(t, "a client that knows", func() bool { return !s.conn.IsConnected() })
	for i := range 3 {
		next := rec
		next.Nonce = fmt.Sprint("late", i)
		_, err := s.Put(storetest.Within(t, 200*time.Millisecond), next)
		if err == nil || errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write without a connection: %v, want a known outcome and the context's cause", err)
		}
	}
	_, err := s.Put(t.Context(), rec)
	if err == nil || errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "is the server up") {
		t.Errorf("a write without a connection: %v, want a known outcome and what to do", err)
	}
	network.Heal()
	eventually(t, "a connection", s.conn.IsConnected)
	if err := s.conn.FlushTimeout(soon); err != nil {
		t.Fatal(err)
	}
	if stored, err := direct.Get(t.Context(), "k"); err != nil || stored.Version != rec.Version {
		t.Errorf("stored is %+v, %v, want %+v", stored, err, rec)
	}
}

// A write that was sent and not answered is unknown, done or not.
func TestUnansweredIsUnknown(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	js := dial(t, srv.Addr)
	bucket := newBucket(t, js, 1)
	s, direct := open(t, dial(t, network.Addr), bucket), open(t, js, bucket)
	for i, fault := range []func(bool){network.SwallowReplies, network.DropRequests} {
		key := fmt.Sprint("k", i)
		rec := storetest.MustPut(t, s, held(key, 1))
		rec.Nonce = "sent"
		fault(true)
		if _, err := s.Put(storetest.Within(t, time.Second/2), rec); !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write without an answer: %v, want an unknown outcome and the context's cause", err)
		}
		_, err := s.Put(t.Context(), rec)
		if !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, errNoAnswer) {
			t.Errorf("a write without an answer, and without a deadline: %v, want an unknown outcome after %v", err, answerWithin)
		}
		stored, err := direct.Get(t.Context(), key)
		if done := stored.Nonce == "sent"; err != nil || done != (i == 0) {
			t.Errorf("stored is %+v, %v", stored, err)
		}
		fault(false)
		network.Reset()
		eventually(t, "a connection", func() bool { _, err := s.Get(storetest.Within(t, time.Second), key); return err == nil })
	}
}

// The permissions that the documentation names are enough, and one that is missing is named.
func TestPermissions(t *testing.T) {
	publish := `"$KV.mine.>", "$JS.API.STREAM.INFO.KV_mine", "$JS.API.STREAM.MSG.GET.KV_mine", "$JS.API.CONSUMER.CREATE.KV_mine.>", "$JS.API.CONSUMER.DELETE.KV_mine.>", "$JS.FC.KV_mine.>"`
	user := func(name, publish string) string {
		return fmt.Sprintf(`{ user: %s, password: p, permissions: { publish: { allow: [%s] }, subscribe: { allow: ["_INBOX.>"] } } }`, name, publish)
	}
	srv := servers.NATS(t, servers.Set("authorization", fmt.Sprintf("{ users: [ { user: root, password: p }, %s, %s, %s ] }",
		user("ada", publish), user("reader", strings.ReplaceAll(publish, `"$KV.mine.>", `, "")), user("eve", `"other"`))))
	login := func(name string) jetstream.JetStream { return dial(t, srv.Addr, natsgo.UserInfo(name, "p")) }
	if err := Create(t.Context(), login("root"), "mine", 1); err != nil {
		t.Fatal(err)
	}
	s := open(t, login("ada"), "mine")
	waiting := startWait(t, s, "k", "")
	rec := storetest.MustPut(t, s, held("k", 1))
	mustWake(t, "with permission", waiting, rec)
	n := 0
	for _, err := range s.List(t.Context(), "") {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if err := s.Delete(t.Context(), "k", rec.Version); err != nil || n != 1 {
		t.Errorf("%d records were listed; Delete: %v", n, err)
	}
	for _, f := range s.Inspect(t.Context()) {
		if f.Status == driver.StatusFail {
			t.Errorf("Inspect found %+v", f)
		}
	}

	reader := open(t, login("reader"), "mine")
	if _, err := reader.Put(t.Context(), held("k", 1)); err == nil || !strings.Contains(err.Error(), "lacks a permission") || !strings.Contains(err.Error(), "$KV.mine.k") {
		t.Errorf("a write without permission: %v, want the subject, and what to do", err)
	}
	if findings := reader.Inspect(t.Context()); !strings.Contains(fmt.Sprint(findings), "permissions failed") {
		t.Errorf("Inspect found %+v", findings)
	}
	if _, err := Open(t.Context(), login("eve"), "mine", Options{}); err == nil || !strings.Contains(err.Error(), "lacks a permission") || !strings.Contains(err.Error(), "STREAM.INFO.KV_mine") {
		t.Errorf("open without permission: %v, want the subject, and what to do", err)
	}
}
