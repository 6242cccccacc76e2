package pipenet_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"resilience4cata.dev/go/examples/internal/pipenet"
)

// ask makes one request of a client, and returns the body.
func ask(ctx context.Context, client *http.Client, l *pipenet.Listener, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Addr().String()+path, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	return string(body), errors.Join(err, resp.Body.Close())
}

// The times are the bubble's, and so exact.
func TestListener_ServesHTTPInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		left := make(chan time.Duration, 1)
		server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begin := time.Now()
			switch r.URL.Path {
			case "/slow":
				time.Sleep(time.Minute)
			case "/never":
				<-r.Context().Done()
				left <- time.Since(begin)
			}
			_, _ = io.WriteString(w, r.URL.Path)
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		client := &http.Client{Transport: l.Transport()}

		begin := time.Now()
		for path, want := range map[string]time.Duration{"/quick": 0, "/slow": time.Minute} {
			begin := time.Now()
			if body, err := ask(t.Context(), client, l, path); body != path || err != nil || time.Since(begin) != want {
				t.Errorf("%s: %q, %v after %v", path, body, err, time.Since(begin))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := ask(ctx, client, l, "/never"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request that its client gives up: %v", err)
		}
		if d := <-left; d != time.Second {
			t.Errorf("the handler heard of it after %v", d)
		}
		if d := time.Since(begin); d != time.Minute+time.Second {
			t.Errorf("all of it took %v", d)
		}

		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
		if _, err := ask(t.Context(), client, l, "/quick"); err == nil {
			t.Error("a closed listener was reached")
		}
	})
}
