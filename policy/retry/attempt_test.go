package retry_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy/retry"
)

func TestAttemptIsTheInnermosts(t *testing.T) {
	clk := clock.NewManual(start)
	inner, outer := on(t, clk, retry.MaxAttempts(2)), on(t, clk, retry.MaxAttempts(2))
	var got [][2]int
	_ = outer.Do(t.Context(), func(ctx context.Context) error {
		o := retry.Attempt(ctx)
		return inner.Do(ctx, func(ctx context.Context) error {
			got = append(got, [2]int{o, retry.Attempt(ctx)})
			return errBoom
		})
	})
	if diff := cmp.Diff([][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 2}}, got); diff != "" {
		t.Errorf("attempts, outer and inner (-want +got)\n%s", diff)
	}
	if n := retry.Attempt(t.Context()); n != 0 {
		t.Errorf("outside: %d, want 0", n)
	}
}

func TestIdempotencyKeyIsOneForAllAttempts(t *testing.T) {
	clk := clock.NewManual(start)
	p := on(t, clk)
	keys := func(ctx context.Context, firstAsked int) (keys []string) {
		_ = p.Do(ctx, func(ctx context.Context) error {
			if retry.Attempt(ctx) >= firstAsked {
				keys = append(keys, retry.IdempotencyKey(ctx), retry.IdempotencyKey(ctx))
			}
			return errBoom
		})
		return keys
	}
	seen := map[string]bool{}
	for firstAsked := 1; firstAsked <= 3; firstAsked++ {
		got := keys(t.Context(), firstAsked)
		if len(got) != 2*(4-firstAsked) || got[0] == "" {
			t.Fatalf("asked from attempt %d on: %q", firstAsked, got)
		}
		for _, k := range got {
			if k != got[0] {
				t.Errorf("asked from attempt %d on: %q, want one key", firstAsked, got)
			}
		}
		seen[got[0]] = true
	}
	if len(seen) != 3 {
		t.Errorf("three calls have %d keys", len(seen))
	}
	if k := retry.IdempotencyKey(t.Context()); k != "" {
		t.Errorf("outside: %q", k)
	}
	for _, k := range keys(retry.WithIdempotencyKey(t.Context(), "order-7"), 1) {
		if k != "order-7" {
			t.Errorf("set from outside: %q", k)
		}
	}
}

func TestANestedCallInheritsOnlyAKeyFromOutside(t *testing.T) {
	clk := clock.NewManual(start)
	inner, outer := on(t, clk), on(t, clk)
	both := func(ctx context.Context) (o, i string) {
		_ = outer.Do(ctx, func(ctx context.Context) error {
			o = retry.IdempotencyKey(ctx)
			return inner.Do(ctx, func(ctx context.Context) error { i = retry.IdempotencyKey(ctx); return nil })
		})
		return o, i
	}
	if o, i := both(t.Context()); o == "" || i == "" || o == i {
		t.Errorf("keys %q and %q, want two", o, i)
	}
	if o, i := both(retry.WithIdempotencyKey(t.Context(), "k")); o != "k" || i != "k" {
		t.Errorf("keys %q and %q, want the one from outside", o, i)
	}
}
