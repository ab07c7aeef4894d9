//go:build !lite

package podlabel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/fence"
)

// TestOneAtATime: over hand-overs without a farewell, a watch never sees two pods with the label.
func TestOneAtATime(t *testing.T) {
	w := newWorld(t, "a", "b")
	a, _ := w.keeper(w.label("a"), time.Hour)
	b, _ := w.keeper(w.label("b"), time.Hour)
	a.Lead(valid(1))
	w.becomes("a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := w.admin.rest.Get().Namespace(w.namespace).Resource("pods").Param("watch", "true").SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 100)
	go func() {
		defer close(seen)
		defer stream.Close()
		have, events := map[string]bool{}, json.NewDecoder(stream)
		for {
			var e struct{ Object metav1.PartialObjectMetadata }
			if events.Decode(&e) != nil {
				return
			}
			have[e.Object.Name] = e.Object.Labels[role] == "leader"
			maps.DeleteFunc(have, func(_ string, v bool) bool { return !v })
			seen <- strings.Join(slices.Sorted(maps.Keys(have)), "+")
		}
	}()
	for token := fence.Token(2); token < 12; token++ {
		k, name := a, "a"
		if token%2 == 0 {
			k, name = b, "b"
		}
		k.Lead(valid(token))
		w.becomes(name)
	}
	// The watch may be behind: it has seen all when it has seen two changes for each hand-over.
	end := time.AfterFunc(patience, cancel)
	defer end.Stop()
	n := 0
	for names := range seen {
		if n++; n == 20 {
			cancel()
		}
		if strings.Contains(names, "+") {
			t.Errorf("at once: %s", names)
		}
	}
	if n < 20 {
		t.Errorf("the watch saw %d changes", n)
	}
}

// TestAnEarlierTermNeverComesBack: a term that is over doesn't take the label off that of a later one, nor come beside it.
func TestAnEarlierTermNeverComesBack(t *testing.T) {
	w := newWorld(t, "a", "b")
	b, _ := w.keeper(w.label("b"), time.Hour)
	b.Lead(valid(9))
	w.becomes("b")
	a, said := w.keeper(w.label("a"), time.Hour)
	a.Lead(valid(5))
	said.has(t, errLater.Error())
	w.becomes("b")
}

// TestLateWrite: a write that puts the label on, and is late, is refused once the label was taken off.
func TestLateWrite(t *testing.T) {
	w := newWorld(t, "a")
	p, err := dial(w.label("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.rest.Client.CloseIdleConnections()
	seen, err := p.own(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.maybe = true // the write was sent
	if err := p.remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	value := "leader"
	if err := p.patch(t.Context(), "a", &value, mark{Election: "job", Token: 1}, seen); err == nil {
		t.Error("it was done")
	}
	w.becomes()
}

// TestOnlyItsOwn: labels of another election, or of people, stay; and on the own pod they are an error.
func TestOnlyItsOwn(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "own", "theirs")
	other := w.label("b")
	other.Election = "other"
	k, _ := w.keeper(other, time.Hour)
	k.Lead(valid(1))
	w.write("c", `{"labels":{"`+role+`":"leader"}}`)
	w.becomes("b", "c")
	a, _ := w.keeper(w.label("a"), time.Hour)
	a.Lead(valid(2))
	w.becomes("a", "b", "c")
	a.Leave(t.Context())
	w.becomes("b", "c")

	w.write("own", `{"labels":{"`+role+`":"leader"}}`)
	own, said := w.keeper(w.label("own"), time.Hour)
	own.Lead(valid(3))
	said.has(t, "take it out of the pod's template")
	own.Leave(t.Context())
	w.becomes("b", "c", "own")

	second, said := w.keeper(w.label("b"), time.Hour)
	second.Lead(valid(4))
	said.has(t, "pod b has it from the election other")
	second.Leave(t.Context())
	w.becomes("b", "c", "own")
}

// TestEnds: the label goes with the term, in doubt, and at the end of the process; and comes again when the doubt is over.
func TestEnds(t *testing.T) {
	w := newWorld(t, "a")
	k, _ := w.keeper(w.label("a"), 10*time.Millisecond)
	k.Lead(valid(1))
	w.becomes("a")
	k.Doubt(true)
	w.becomes()
	// The API server shows it before its answer has come back.
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		set, err := k.State()
		if !set && err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v, %v", set, err)
		}
	}
	k.Doubt(false)
	w.becomes("a")
	k.Leave(t.Context())
	if got := w.labelled(); len(got) > 0 {
		t.Errorf("Leave returned: %v", got)
	}
	var mu sync.Mutex
	var over error
	k.Lead(Term{Token: 2, Check: func() error {
		mu.Lock()
		defer mu.Unlock()
		return over
	}})
	w.becomes("a")
	mu.Lock()
	over = errors.New("over")
	mu.Unlock()
	w.becomes() // nobody has told it
	k.Lead(valid(3))
	w.becomes("a")
	w.write("a", `{"labels":{"`+role+`":null}}`) // another program
	w.becomes("a")
	k.Close()
	if got := w.labelled(); len(got) > 0 {
		t.Errorf("Close returned: %v", got)
	}
}

// TestLeftBehind: the next process of a pod takes off what the one before left, whoever leads.
func TestLeftBehind(t *testing.T) {
	w := newWorld(t, "a")
	w.write("a", `{"labels":{"`+role+`":"leader"},"annotations":{"`+role+suffix+`":"{\"election\":\"job\",\"token\":7}"}}`)
	w.becomes("a")
	w.keeper(w.label("a"), time.Hour)
	w.becomes()
}

// TestServerAway: Leave returns in time while the API server hangs, and the label is taken off when it answers again.
func TestServerAway(t *testing.T) {
	w := newWorld(t, "a")
	k, said := w.keeper(w.label("a"), time.Hour)
	k.Leave(t.Context()) // it is idle
	hang := &hanging{next: k.pods.rest.Client.Transport}
	k.pods.rest.Client.Transport = hang
	k.Lead(valid(1))
	w.becomes("a")
	hang.begin()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	k.Leave(ctx)
	if ctx.Err() == nil {
		t.Error("Leave didn't wait")
	}
	w.becomes("a")
	if set, _ := k.State(); !set {
		t.Error("it takes the label for gone")
	}
	hang.end()
	w.becomes()
	said.has(t, "the API server doesn't answer")
}

// TestAnswerLost: a label whose answer never came counts as on.
func TestAnswerLost(t *testing.T) {
	w := newWorld(t, "a")
	k, _ := w.keeper(w.label("a"), time.Hour)
	k.Leave(t.Context()) // it is idle
	hang := &hanging{next: k.pods.rest.Client.Transport, answers: true}
	k.pods.rest.Client.Transport = hang
	k.Lead(valid(1))
	w.becomes("a")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	hang.begin()
	k.Leave(ctx)
	if set, _ := k.State(); !set {
		t.Error("it takes the label for gone")
	}
	hang.end()
	w.becomes()
}

func TestParse(t *testing.T) {
	t.Setenv(EnvPod, "pod")
	t.Setenv(EnvNamespace, "ns")
	if l, err := Parse(role+"=leader", "job"); err != nil || l != (Label{Key: role, Value: "leader", Pod: "pod", Namespace: "ns", Election: "job"}) {
		t.Errorf("%+v, %v", l, err)
	}
	for text, want := range map[string]string{
		"leader": "want KEY=VALUE", "role=": "want KEY=VALUE", "=leader": `key ""`, "a b=c": `key "a b"`, "role=a b": `value "a b"`,
		string(bytes.Repeat([]byte("k"), 60)) + "=v": "at most 58 bytes",
	} {
		if _, err := Parse(text, "job"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	t.Setenv(EnvNamespace, "")
	if _, err := Parse("a=b", "job"); err == nil || !strings.Contains(err.Error(), EnvNamespace) {
		t.Errorf("without a namespace: %v", err)
	}
}
