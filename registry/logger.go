package registry

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
	"resilience4cata.dev/go/policy/circuitbreaker"
	"resilience4cata.dev/go/policy/ratelimit"
	"resilience4cata.dev/go/policy/retry"
	"resilience4cata.dev/go/policy/timeout"
)

// quiet is how long refusals of one instance are counted instead of written,
// after one was written. A second is short to a reader, and bounds what a
// thousand refusals a millisecond can do to a log.
const quiet = time.Second

// logger writes events as structured records.
type logger struct {
	to     *slog.Logger
	bursts sync.Map // burstKey -> *burst
}

// burstKey is the instances whose refusals are counted: they live as long as the
// registry, and so do these.
type burstKey struct{ policy, id string }

// burst is the refusals of one instance.
type burst struct {
	mu    sync.Mutex
	until time.Time // up to then they are counted
	held  int       // how many were, since the last one that was written
}

func newLogger(to *slog.Logger) *logger { return &logger{to: to} }

func (l *logger) listen(ctx context.Context, e policy.Event) {
	level := levelOf(e)
	if !l.to.Enabled(ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 8), slog.String("policy", e.Policy()), slog.String("id", e.ID()))
	switch e.(type) {
	case circuitbreaker.Rejected, ratelimit.Limited, bulkhead.Full:
		held, write := l.burst(e).take(e.At())
		if !write {
			return
		}
		if held > 0 {
			attrs = append(attrs, slog.Int("more", held))
		}
	}
	l.to.LogAttrs(ctx, level, textOf(e), append(attrs, fieldsOf(e)...)...)
}

// levelOf is how much an event matters.
func levelOf(e policy.Event) slog.Level {
	switch e := e.(type) {
	case circuitbreaker.StateChanged:
		if e.To == circuitbreaker.Open {
			return slog.LevelWarn
		}
		return slog.LevelInfo
	case timeout.Exceeded, retry.GaveUp:
		return slog.LevelWarn
	case policy.CallbackPanic:
		return slog.LevelError
	}
	if e.Policy() == "pipeline" { // late outcomes; that package imports this one
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

func (l *logger) burst(e policy.Event) *burst {
	key := burstKey{e.Policy(), e.ID()}
	if b, ok := l.bursts.Load(key); ok {
		return b.(*burst) //nolint:forcetypeassert // nothing else is stored
	}
	b, _ := l.bursts.LoadOrStore(key, &burst{})
	return b.(*burst) //nolint:forcetypeassert // nothing else is stored
}

// take reports whether a refusal at the given time is to be written, and how many
// before it were not.
func (b *burst) take(at time.Time) (held int, write bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// A clock that goes back far must not silence the log for long.
	if at.Before(b.until) && b.until.Sub(at) <= quiet {
		b.held++
		return 0, false
	}
	held, b.held, b.until = b.held, 0, at.Add(quiet)
	return held, true
}

// textOf says what happened: "circuitbreaker state changed".
func textOf(e policy.Event) string {
	var b strings.Builder
	b.WriteString(e.Policy())
	for _, c := range reflect.TypeOf(e).Name() {
		if unicode.IsUpper(c) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// fieldsOf are the fields of an event, but for what all have in common.
func fieldsOf(e policy.Event) (attrs []slog.Attr) {
	v := reflect.ValueOf(e)
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous || !f.IsExported() {
			continue
		}
		name := strings.ToLower(f.Name[:1]) + f.Name[1:]
		switch x := v.Field(i).Interface().(type) {
		case nil:
		case error:
			attrs = append(attrs, slog.String(name, x.Error()))
		case []byte:
			attrs = append(attrs, slog.String(name, string(x)))
		default:
			attrs = append(attrs, slog.Any(name, x))
		}
	}
	return attrs
}
