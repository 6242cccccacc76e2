package callctx_test

import (
	"context"
	"sync"
	"testing"

	"resilience4cata.dev/go/internal/callctx"
)

func retrying() *callctx.Plan {
	p := newPlan()
	p.Retrying = true
	return p
}

func TestAttempt_R15_NumbersFollowEachOther(t *testing.T) {
	plan := retrying()
	if callctx.Find(t.Context()) != nil {
		t.Error("an attempt outside")
	}
	var prev *callctx.Context
	for n := 1; n <= 4; n++ {
		c := callctx.New(t.Context(), plan)
		if prev != nil {
			c.Follow(prev, prev.Attempt()+1)
		}
		child, cancel := context.WithCancel(context.WithoutCancel(c))
		found := callctx.Find(child)
		if found != c || found.Attempt() != n {
			t.Errorf("attempt %d: found %v with number %d", n, found, found.Attempt())
		}
		c.Finish()
		if found.Attempt() != n {
			t.Errorf("attempt %d has number %d after its end", n, found.Attempt())
		}
		cancel()
		prev = c
	}
}

func TestAttempt_R15_OnlyContextsOfARetryCount(t *testing.T) {
	outer := callctx.New(t.Context(), retrying())
	timed := callctx.New(outer, newPlan()) // a pipeline with a timeout alone
	inner := callctx.New(timed, retrying())
	if callctx.Find(timed) != outer || callctx.Find(inner) != inner {
		t.Error("the innermost attempt of a retry was not found")
	}
	if got, want := callctx.KeyFrom(timed), callctx.KeyFrom(outer); got != want || got == "" {
		t.Errorf("key %q below a pipeline without a retry, want %q", got, want)
	}
	if callctx.KeyFrom(t.Context()) != "" || callctx.KeyFrom(callctx.New(t.Context(), newPlan())) != "" {
		t.Error("a key outside of any retry")
	}
}

func TestIdempotencyKey_R15_IsOneForAllAttempts(t *testing.T) {
	for asked := range 3 { // by which attempt first
		var keys []string
		var prev *callctx.Context
		for n := range 3 {
			c := callctx.New(t.Context(), retrying())
			if prev != nil {
				c.Follow(prev, prev.Attempt()+1)
			}
			if n >= asked {
				keys = append(keys, callctx.KeyFrom(c))
			}
			prev = c
		}
		for _, k := range keys {
			if k != keys[0] || len(k) < 26 {
				t.Errorf("first asked by attempt %d: keys %q", asked+1, keys)
			}
		}
	}
	one, two := callctx.New(t.Context(), retrying()), callctx.New(t.Context(), retrying())
	if callctx.KeyFrom(one) == callctx.KeyFrom(two) {
		t.Error("two calls have one key")
	}
}

func TestIdempotencyKey_R15_ConcurrentAskersGetOne(t *testing.T) {
	for range 200 {
		c := callctx.New(t.Context(), retrying())
		var keys [4]string
		var next *callctx.Context
		var wg sync.WaitGroup
		for i := range keys {
			wg.Go(func() { keys[i] = callctx.KeyFrom(c) })
		}
		wg.Go(func() {
			next = callctx.New(t.Context(), retrying())
			next.Follow(c, c.Attempt()+1)
		})
		wg.Wait()
		for _, k := range keys {
			if k != keys[0] || k == "" || callctx.KeyFrom(next) != k {
				t.Fatalf("keys %q and %q", keys, callctx.KeyFrom(next))
			}
		}
	}
}

func TestIdempotencyKey_R15_OnlyOneFromOutsideIsInherited(t *testing.T) {
	// Above the outer pipeline.
	outer := callctx.New(callctx.WithKey(t.Context(), "k"), retrying())
	inner := callctx.New(outer, retrying())
	if callctx.KeyFrom(outer) != "k" || callctx.KeyFrom(inner) != "k" {
		t.Errorf("keys %q and %q, want k", callctx.KeyFrom(outer), callctx.KeyFrom(inner))
	}
	// Between the two.
	outer = callctx.New(t.Context(), retrying())
	inner = callctx.New(callctx.WithKey(outer, "k"), retrying())
	if got := callctx.KeyFrom(outer); got == "k" || got == "" {
		t.Errorf("the outer's key is %q", got)
	}
	if callctx.KeyFrom(inner) != "k" {
		t.Errorf("the inner's key is %q, want k", callctx.KeyFrom(inner))
	}
	// What the outer made for itself is its own.
	inner = callctx.New(outer, retrying())
	if a, b := callctx.KeyFrom(outer), callctx.KeyFrom(inner); a == b || b == "" {
		t.Errorf("keys %q and %q", a, b)
	}
	// An empty one is none.
	c := callctx.New(callctx.WithKey(t.Context(), ""), retrying())
	if callctx.KeyFrom(c) == "" {
		t.Error("an empty key from outside hides the call's own")
	}
}

// owner hears of the end.
type owner struct {
	callctx.Info
	key   callctx.Key
	ended []callctx.Verdict
	err   error // c.Err when told
	after func()
}

func (*owner) Attempt() int        { return 7 }
func (o *owner) Key() *callctx.Key { return &o.key }
func (o *owner) Ended(c *callctx.Context, v callctx.Verdict) func() {
	o.ended = append(o.ended, v)
	o.err = c.Err()
	return o.after
}

func TestOwnerHearsOfADeadlineThatFired(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		parent context.Context
		end    func(c *callctx.Context, s *slot) (after func())
		want   []callctx.Verdict
		err    error
	}{
		"expired":   {t.Context(), (*callctx.Context).WheelExpire, []callctx.Verdict{callctx.Expired}, context.DeadlineExceeded},
		"void":      {cancelled, (*callctx.Context).WheelExpire, []callctx.Verdict{callctx.Void}, context.Canceled},
		"finished":  {t.Context(), func(c *callctx.Context, _ *slot) func() { c.Finish(); return nil }, nil, nil},
		"cancelled": {t.Context(), func(c *callctx.Context, _ *slot) func() { c.Cancel(callctx.Canceled); return nil }, nil, nil},
	} {
		for _, looked := range []bool{false, true} {
			ran := false
			o := &owner{after: func() { ran = true }}
			o.Info.Owner = o
			c, s := arm(tc.parent, retrying())
			c.Own(&o.Info)
			if looked {
				c.Done()
			}
			after := tc.end(c, s)
			c.WheelExpire(s)                                                                                     // once at most
			if len(o.ended) != len(tc.want) || len(tc.want) > 0 && o.ended[0] != tc.want[0] || o.err != tc.err { //nolint:errorlint // that very value
				t.Errorf("%s: owner has heard %v with %v, want %v with %v", name, o.ended, o.err, tc.want, tc.err)
			}
			if (after != nil) != (tc.want != nil) || ran {
				t.Errorf("%s: what comes after was lost or run too early", name)
			}
			if c.Owner() != o || callctx.Find(c).Attempt() != 7 || callctx.KeyFrom(c) != o.key.Text() {
				t.Errorf("%s: the owner is not asked", name)
			}
			c.Finish()
		}
	}
}

// An attempt whose key was asked for, and no more, has an owner that nothing
// follows from.
func TestAnAttemptWithoutOwnerExpires(t *testing.T) {
	c, s := arm(t.Context(), retrying())
	if c.Owner() != nil {
		t.Error("an owner")
	}
	callctx.KeyFrom(c)
	if c.WheelExpire(s) != nil {
		t.Error("something to do afterwards")
	}
	wantVerdict(t, c, callctx.Expired)
}

func TestInitMakesWhatNewReturns(t *testing.T) {
	var o struct{ callctx.Context }
	plan := newPlan()
	o.Init(t.Context(), plan)
	o.Start(-5)
	if o.Parent() != t.Context() || o.Plan() != plan || o.WheelStart() != -5 || o.WheelLimit() != int64(plan.Limit) || o.WheelStamp().Load() != 0 || o.Slot() != nil {
		t.Error("not what was given")
	}
	wantVerdict(t, &o.Context, callctx.InTime)
}
