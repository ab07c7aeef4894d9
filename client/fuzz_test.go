package client

import (
	"bytes"
	"testing"
)

// FuzzStream reads what a server, or something between, may send on a watch: each event says one thing, and where to go on is what the
// last one said.
func FuzzStream(f *testing.F) {
	f.Add([]byte("event: reset\ndata: {}\n\nevent: lease\ndata: {\"seq\":4,\"lease\":{\"name\":\"a\",\"state\":\"held\",\"token\":1}}\n\nid: x:4\nevent: beat\ndata: {\"age\":0.001}\n\n"))
	f.Add([]byte("id: x:5\nevent: session\ndata: {\"session\":\"s\",\"ttl\":15,\"expires_in\":\"1m\"}\n\n: a comment\nevent:lease\ndata:{\"gone\":true,\ndata:\"lease\":{}}\n\n"))
	f.Add([]byte("event: lease\ndata: {\"lease\":{\"problem\":{\"code\":\"corrupt_record\",\"name\":\"a\"},\"paused\":{\"by\":\"x\"},\"candidates\":[{}]}}\n\n"))
	f.Add([]byte("event: beat\ndata: 5\n\nevent: later\n\n\n\x00:\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		told := 0
		w := &watch{yield: func(e Event, err error) bool {
			told++
			kinds := 0
			for _, is := range []bool{e.Reset, e.Lease != nil, e.Session != nil, e.Freshness != nil} {
				if is {
					kinds++
				}
			}
			if kinds != 1 || err != nil {
				t.Errorf("%+v, %v", e, err)
			}
			return told < 5
		}}
		var m message
		for line := range bytes.Lines(text) {
			if !m.add(bytes.TrimRight(line, "\r\n")) {
				continue
			}
			before := w.last
			if err := w.tell(m); err != nil && w.last != before {
				t.Errorf("%+v: goes on after what it could not read: %v", m, err)
			}
			m = message{}
			if w.left {
				break
			}
		}
		if told > 5 {
			t.Errorf("%d events to somebody who has left", told)
		}
	})
}
