package rdlm

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/store/memory"
)

// FuzzRequest sends requests of any kind: the answer has one of RDLM's statuses, and 500 only where RDLM itself fails.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{"/", "/locks/a", "/locks/a/0123456789abcdef0123456789abcdef", "/resources", "/resources/a", "/locks/%2f", "/x"} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "HEAD", ""} {
			f.Add(method, path, `{"title": "t", "wait": 0, "lifetime": 60, "uid": "0123456789abcdef0123456789abcdef"}`, false)
		}
	}
	for _, body := range []string{"", "[]", `{"title": 1, "wait": "-1", "lifetime": 1e400}`, "{\"title\": \"\xff\"}", `{"title": null, "wait": null, "lifetime": []}`} {
		f.Add("POST", "/locks/a", body, true)
	}
	f.Fuzz(func(t *testing.T, method, path, body string, strict bool) {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" {
			return
		}
		st := memory.New(memory.Options{})
		reg := lessor.New(st, lessor.Options{})
		defer func() {
			_ = reg.Close()
			_ = st.Close()
		}()
		h := New(reg, st, clock.System(), Options{Strict: strict, Admin: Admin{open: true}, MaxBody: 4 << 10})
		for range 2 {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
			r.Method, r.URL = method, u
			ctx, cancel := clock.WithTimeout(t.Context(), clock.System(), 1e6) // for those who wait
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(ctx))
			cancel()
			switch w.Code {
			case 200, 201, 204, 304, 400, 404, 405, 408, 409, 413, 503:
			case 500:
				if !strict {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			default:
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
	})
}

// FuzzWhole reads numbers: one that is read is within the bounds, and reads the same when it is written out.
func FuzzWhole(f *testing.F) {
	for _, text := range []string{"1", `"-5"`, "5.9", "1e300", "1e-300", "null", "true", `" +7 "`, "1e999999999", `"x"`, "0x10", "-0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := whole([]byte(text))
		if err == nil && (n > mostSeconds || n < -mostSeconds) {
			t.Errorf("%s: %d", text, n)
		}
	})
}
