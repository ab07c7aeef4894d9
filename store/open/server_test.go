package open

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseServer(t *testing.T) {
	for rest, want := range map[string]string{
		"//h":                       `"" "" [h:99] "" map[]`,
		"//h:7,[::1]:8,10.0.0.1/p":  `"" "" [h:7 [::1]:8 10.0.0.1:99] "p" map[]`,
		"//ada:p%40ss:w@h/a/b%20c":  `"ada" "p@ss:w" [h:99] "a/b c" map[]`,
		"//h?tls=true&cacert=/x/y":  `"" "" [h:99] "" map[cacert:/x/y tls:true]`,
		"//ada@h?timeout=5s":        `"ada" "" [h:99] "" map[timeout:5s]`,
		"//a:b@c:d@h:1?server_name": `"a" "b@c:d" [h:1] "" map[server_name:]`,
	} {
		s, err := parseServer(rest, "99", "timeout")
		if got := fmt.Sprintf("%q %q %v %q %v", s.user, s.password, s.hosts, s.path, s.params); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", rest, got, err, want)
		}
	}
	for rest, want := range map[string]string{
		"":                    "want // after the colon",
		"h:1":                 "want // after the colon",
		"//":                  `host "": want a name`,
		"//ada:secret@":       `host "": want a name`,
		"//h:0":               "port from 1 to 65535",
		"//h:x":               "port from 1 to 65535",
		"//h,,i":              `host "": want a name`,
		"//h?ttl=1":           `unknown parameter "ttl": known are cacert, cert, key, server_name, timeout, tls`,
		"//h?tls=a&tls=b":     "there 2 times",
		"//ada:secret%zz@h":   "user or password has a %",
		"//h/%zz":             `path "%zz"`,
		"//ada:secret@h:port": "port from 1 to 65535",
	} {
		_, err := parseServer(rest, "99", "timeout")
		if rest == "//" {
			if s, err := parseServerOrNone(rest, "99"); err != nil || len(s.hosts) > 0 {
				t.Errorf("without a host: %v, %v", s.hosts, err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want one that says %q", rest, err, want)
		}
	}
}

func TestTLSErrorsNameTheFile(t *testing.T) {
	for query, want := range map[string]string{
		"cacert=/none.pem":         "cacert: open /none.pem",
		"cacert=server_test.go":    "cacert=server_test.go: no certificate in it",
		"cert=a.pem":               "needs both",
		"cert=/a.pem&key=/b.pem":   "cert=/a.pem and key=/b.pem",
		"tls=yes":                  "want true or false",
		"tls=true&cert=x&key=/y.p": "cert=x and key=/y.p",
	} {
		s, err := parseServer("//h?"+query, "1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.tlsConfig(false, certificates{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want one that says %q", query, err, want)
		}
	}
}

func TestTLSIsOnWhenItIsAskedFor(t *testing.T) {
	for query, want := range map[string]bool{"": false, "tls=true": true, "tls=false&server_name=x": false, "server_name=x": true} {
		s, _ := parseServer("//h?"+query, "1")
		if config, err := s.tlsConfig(false, certificates{}); err != nil || (config != nil) != want {
			t.Errorf("%q: %v, %v", query, config, err)
		}
	}
}

func TestRedact(t *testing.T) {
	for url, want := range map[string]string{
		"file:/x/y@z:1":                      "file:/x/y@z:1",
		"etcd://h/p":                         "etcd://h/p",
		"etcd://ada:secret@h:1,i/p":          "etcd://ada:xxxxx@h:1,i/p",
		"etcd://a:se@cret:x@h":               "etcd://a:xxxxx@h",
		"http://h/p?token=secret&dc=a":       "http://h/p?token=xxxxx&dc=a",
		"http://h/db?sslpassword=secret":     "http://h/db?sslpassword=xxxxx",
		"http://ada@h":                       "http://ada@h",
		"http://h/p?auth=x&session_token=se": "http://h/p?auth=xxxxx&session_token=xxxxx",
	} {
		if got := Redact(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// A parameter that is a duration is read as the command's flags are.
func TestParametersAreDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"5s": 5 * time.Second, "1y": 8760 * time.Hour, "30d": 720 * time.Hour, "0": 0} {
		s := server{params: map[string]string{"age": text}}
		if got, err := s.duration("age", time.Minute); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"5": `parameter age="5": want a duration such as 5s: a number needs a unit`, "-5s": "want a duration such as 5s", "": "want a duration"} {
		if got, err := (server{params: map[string]string{"age": text}}).duration("age", 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", text, got, err, want)
		}
	}
}
