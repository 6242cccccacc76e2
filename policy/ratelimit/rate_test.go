package ratelimit_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/internal/waitq"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/ratelimit"
)

// setRate sets a rate that must be legal.
func setRate(tb testing.TB, p *ratelimit.Policy, n int, period time.Duration, burst int) {
	tb.Helper()
	if err := p.SetRate(n, period, burst); err != nil {
		tb.Fatal(err)
	}
}

// L-5: a change of the rate plans those who wait anew, from what they have
// earned, whether it is faster or slower.
func TestSetRatePlansWaitersAnew(t *testing.T) {
	tests := []struct {
		name   string
		n      int
		period time.Duration
		burst  int
		want   []time.Duration // of W1, W2, W3, in ms; the change is at 500
		newDue time.Duration
	}{
		{"same", 1, time.Second, 1, []time.Duration{1000, 2000, 3000}, 4000},
		{"faster", 10, time.Second, 1, []time.Duration{550, 650, 750}, 850},
		{"slower", 1, 4 * time.Second, 1, []time.Duration{2500, 6500, 10500}, 14500},
		{"burst 1 to 2: one at once", 1, time.Second, 2, []time.Duration{500, 1000, 2000}, 3000},
		{"burst 1 to 9: all at once", 1, time.Second, 9, []time.Duration{500, 500, 500}, 1000},
		{"faster, with its burst: all at once", 100, time.Second, 100, []time.Duration{500, 500, 500}, 505},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, m := newPassive(t, ratelimit.PerSecond(1), ratelimit.Burst(1))
			drain(p)
			qs := []*queued{enqueue(t, p, m, time.Hour), enqueue(t, p, m, time.Hour), enqueue(t, p, m, time.Hour)}
			m.Advance(500 * time.Millisecond)
			setRate(t, p, tt.n, tt.period, tt.burst)
			if got, want := nextWait(t, p), tt.newDue*time.Millisecond-500*time.Millisecond; got != want {
				t.Errorf("a newcomer would wait %s, want %s", got, want)
			}
			m.Advance(time.Minute)
			for i := range tt.want {
				tt.want[i] *= time.Millisecond
			}
			if diff := cmp.Diff(tt.want, dues(qs...)); diff != "" {
				t.Errorf("served at (-want +got)\n%s", diff)
			}
			if m.Pending() != 0 || p.Sealed() {
				t.Errorf("%d timers are left, sealed %v", m.Pending(), p.Sealed())
			}
		})
	}
}

// L-5: who no longer fits is refused at once, with the wait of the new plan, and
// those behind move up.
func TestSetRateRefusesWhoNoLongerFits(t *testing.T) {
	p, _, m, l := newIn(t, ratelimit.PerSecond(1))
	drain(p)
	rejected := p.Snapshot().Rejected
	w1 := enqueue(t, p, m, 5*time.Second)
	w2 := enqueue(t, p, m, 2*time.Second) // exactly
	w3 := enqueue(t, p, m, time.Minute)
	until := waitq.New(func() {})
	if entered, err := p.EnterAsync(t.Context(), time.Hour, 1+int64(8*time.Second), until); entered || err != nil {
		t.Fatal(entered, err)
	}
	setRate(t, p, 1, 4*time.Second, 1)
	// W1 at 4 s, W2 would be at 8 s, so W3 is; the last would be at 12 s.
	if w1.State() != waitq.Waiting || w3.State() != waitq.Waiting {
		t.Errorf("W1 %v, W3 %v; they fit", w1.State(), w3.State())
	}
	<-w2.woken
	for _, r := range []struct {
		w    *waitq.Waiter
		wait time.Duration
	}{{w2.Waiter, 8 * time.Second}, {until, 12 * time.Second}} {
		if r.w.State() != waitq.Refused || retryAfter(t, r.w.Err()) != r.wait {
			t.Errorf("%v with %v, want refused with %s", r.w.State(), r.w.Err(), r.wait)
		}
	}
	if l.Len() != 2 {
		t.Errorf("events %v", l.Events())
	}
	m.Advance(time.Minute)
	if diff := cmp.Diff([]time.Duration{4 * time.Second, 8 * time.Second}, dues(w1, w3)); diff != "" {
		t.Errorf("served at (-want +got)\n%s", diff)
	}
	if got := p.Snapshot().Rejected - rejected; got != 2 {
		t.Errorf("%d rejected", got)
	}
}

// L-5: the refusal of a blocked call is told with its own context, once.
func TestSetRateRefusesABlockedCall(t *testing.T) {
	p, _, m, l := newIn(t, ratelimit.PerSecond(1), ratelimit.MaxWait(time.Second))
	drain(p)
	result := acquire(t.Context(), p)
	if err := m.AwaitSleepers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	setRate(t, p, 1, time.Minute, 1)
	if got := retryAfter(t, <-result); got != time.Minute {
		t.Errorf("RetryAfter %s", got)
	}
	if l.Len() != 1 || l.Contexts()[0] != t.Context() {
		t.Errorf("events %v", l.Events())
	}
	if m.Pending() != 0 || p.Sealed() {
		t.Errorf("%d timers are left, sealed %v", m.Pending(), p.Sealed())
	}
}

// L-5: a lower burst drops what is stored above it, for good; a higher one
// stores nothing by itself.
func TestSetRateAndTheStore(t *testing.T) {
	p, m := newManual(t, ratelimit.PerSecond(10), ratelimit.Burst(10))
	steps := []struct{ burst, want int }{{10, 10}, {20, 10}, {4, 4}, {10, 4}, {1, 1}, {3, 1}}
	for _, s := range steps {
		setRate(t, p, 10, time.Second, s.burst)
		if got := p.Snapshot().Available; got != s.want {
			t.Errorf("burst %d: %d available, want %d", s.burst, got, s.want)
		}
	}
	// Half a permit is worth half a permit at another rate.
	drain(p)
	m.Advance(50 * time.Millisecond)
	setRate(t, p, 1, 7*time.Second, 3)
	if got, want := nextWait(t, p), 3500*time.Millisecond; got != want {
		t.Errorf("the next waits %s, want %s", got, want)
	}
}

func TestSetRateNamesTheField(t *testing.T) {
	p, _ := newManual(t, ratelimit.PerSecond(5), ratelimit.MaxWait(time.Second))
	want := p.Config()
	for path, err := range map[string]error{
		"limit":   p.SetRate(0, time.Second, 1),
		"period":  p.SetRate(1, 0, 1),
		"burst":   p.SetRate(1, time.Second, -5),
		"maxWait": p.Reconfigure(ratelimit.Config{Limit: 1, Period: 1, Burst: 1, MaxWait: -1}),
	} {
		var ce *policy.ConfigError
		if !errors.As(err, &ce) || ce.Path != path || ce.ID != "b" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if diff := cmp.Diff(want, p.Config()); diff != "" {
		t.Errorf("a refused change changed (-want +got)\n%s", diff)
	}
	setRate(t, p, 7, time.Minute, 3)
	if diff := cmp.Diff(ratelimit.Config{Limit: 7, Period: time.Minute, Burst: 3, MaxWait: time.Second}, p.Config()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// G-7: a reload plans those who wait anew; they keep the longest wait with
// which they came, newcomers get the new one.
func TestReconfigureKeepsTheWaitOfThoseWhoWait(t *testing.T) {
	p, m := newPassive(t, ratelimit.PerSecond(1), ratelimit.MaxWait(5*time.Second))
	drain(p)
	result := acquire(t.Context(), p)
	if err := m.AwaitSleepers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := p.Reconfigure(config(ratelimit.Per(1, 4*time.Second), ratelimit.MaxWait(time.Second))); err != nil {
		t.Fatal(err)
	}
	if got := retryAfter(t, p.Acquire(t.Context())); got != 8*time.Second {
		t.Errorf("a newcomer was refused with %s", got)
	}
	m.Advance(4 * time.Second)
	if err := <-result; err != nil {
		t.Errorf("who waited got %v", err)
	}
}

// L-5 under a rush: a bucket that is replaced under those who take from it
// admits nobody twice.
func TestSetRateUnderARush(t *testing.T) {
	for range 50 {
		p, _ := newManual(t, ratelimit.Per(1, time.Hour), ratelimit.Burst(200))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 100 {
					p.TryAcquire()
				}
			})
		}
		wg.Go(func() {
			for i := range 20 {
				setRate(t, p, 1, time.Duration(1+i)*time.Hour, 200)
			}
		})
		wg.Wait()
		if diff := cmp.Diff(counts{0, 0, 200, 200}, countsOf(p)); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
}

// Three calls of the first cycle go at once, three more reserve within the
// longest wait, the rest is refused. (Permits come one by one here, so the second
// three come at intervals of c/3 and not together at the next cycle.)
func TestConform_57_Reservations(t *testing.T) {
	const c = 10 * time.Millisecond
	p, m := newPassive(t, ratelimit.Per(3, c))
	var got []time.Duration
	var qs []*queued
	for range 9 {
		m.Advance(1)
		q := newQueued(m)
		switch entered, err := p.EnterAsync(t.Context(), 12*time.Millisecond, 0, q.Waiter); {
		case err != nil:
			got = append(got, -1)
		case entered:
			got = append(got, 0)
		default:
			qs = append(qs, q)
			got = append(got, m.Now().Sub(start)) // replaced below
		}
	}
	m.Advance(time.Second)
	for i, q := range qs {
		got[3+i] = q.due() - got[3+i]
	}
	// The first came at 1 ns; call i of the second three, at i+4 ns, is due at
	// 1 ns + (i+1)·c/3, rounded up.
	want := []time.Duration{0, 0, 0, 3333331, 6666663, c - 5, -1, -1, -1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got)\n%s", diff)
	}
}

// While one waits the limit is doubled: nothing is free, the wait of the next
// is halved to one cycle, and after the cycle one is free.
func TestConform_59_LimitIsDoubledWhileOneWaits(t *testing.T) {
	p, m := newPassive(t, ratelimit.PerSecond(1))
	drain(p)
	w := enqueue(t, p, m, time.Hour)
	if got := nextWait(t, p); got != 2*time.Second {
		t.Errorf("the next waits %s", got)
	}
	setRate(t, p, 2, time.Second, 1)
	if s := p.Snapshot(); s.Available != 0 || s.Waiting != 1 {
		t.Errorf("%+v", s)
	}
	if got := nextWait(t, p); got != time.Second {
		t.Errorf("the next waits %s, want one cycle", got)
	}
	m.Advance(time.Second)
	if got := p.Snapshot().Available; got != 1 || w.due() != 500*time.Millisecond {
		t.Errorf("after the cycle %d are free, the waiter came at %s", got, w.due())
	}
}

// SetRate, waits, leaves and tries from many goroutines on the real clock: all
// calls end, and the books balance.
func TestEverythingAtOnce(t *testing.T) {
	p := newOn(t, clock.System(), ratelimit.PerSecond(100_000), ratelimit.MaxWait(time.Second))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var ok, refused uint64
	for g := range 4 {
		wg.Go(func() {
			var myOK, myRefused uint64
			for i := range 500 {
				var err error
				if i%4 == g {
					err = p.SetRate(50_000+i, time.Second, 1+i%7)
					if err != nil {
						t.Error(err)
					}
				}
				if err = p.Acquire(t.Context()); err == nil {
					myOK++
				} else {
					myRefused++
				}
			}
			mu.Lock()
			ok, refused = ok+myOK, refused+myRefused
			mu.Unlock()
		})
	}
	wg.Wait()
	s := p.Snapshot()
	if s.Admitted != ok || s.Rejected != refused || ok+refused != 2000 || s.Waiting != 0 || p.Sealed() {
		t.Errorf("%+v, want %d and %d", s, ok, refused)
	}
}
