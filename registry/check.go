package registry

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"resilience4cata.dev/go/registry/config"
)

// Finding is something in the settings that is legal and hardly meant.
type Finding struct {
	Code     string `json:"code"`     // stable, listed in docs/errors.md: "R4C-CHK-002"
	ID       string `json:"id"`       // the pipeline, or the instance in the configuration
	Severity string `json:"severity"` // "warning": it cannot work as it says; "info": it may hurt
	Text     string `json:"text"`     // the values, what follows from them, and the way out
}

// String is the finding as a line for people.
func (f Finding) String() string {
	return f.Severity + ": " + f.ID + ": " + f.Text + " [" + f.Code + "]"
}

// LogValue makes the finding a group in structured logs.
func (f Finding) LogValue() slog.Value {
	return slog.GroupValue(slog.String("code", f.Code), slog.String("id", f.ID), slog.String("severity", f.Severity), slog.String("text", f.Text))
}

// The severities.
const (
	warning = "warning"
	info    = "info"
)

// The findings.
const (
	checkUnused       = "R4C-CHK-001" // an instance that nobody asked for
	checkBulkheadWait = "R4C-CHK-002" // a wait for a slot that the time around it ends first
	checkLimiterWait  = "R4C-CHK-003" // a wait for a permit that MaxDuration ends first
	checkNoSecond     = "R4C-CHK-004" // MaxDuration leaves no room for a second attempt
	checkStorm        = "R4C-CHK-005" // retries without delay and budget on a shared limit
	checkSelfRefusal  = "R4C-CHK-006" // a limit of 1 that an async retry finds taken by itself
	checkNoLayer      = "R4C-CHK-007" // a pipeline that protects nothing
	checkIdle         = "R4C-CHK-008" // a section for a layer that no pipeline has
)

// Check returns what contradicts itself in the effective settings of all
// pipelines, and what of the configuration no pipeline asked for, sorted by id.
// Call it when all pipelines are built, before the first call. It looks at
// settings, not at what handles have set.
func (r *Registry) Check() []Finding { return slices.Clone(r.look().findings) }

// rules are the findings about one pipeline. Each returns "" for none.
var rules = []struct {
	code, severity string
	find           func(p *viewed, shared func(kind, id string) bool) string
}{
	{checkBulkheadWait, warning, bulkheadWait},
	{checkLimiterWait, warning, limiterWait},
	{checkNoSecond, warning, noSecondAttempt},
	{checkStorm, warning, storm},
	{checkSelfRefusal, info, selfRefusal},
	{checkNoLayer, info, noLayer},
}

// check makes the findings of a view of the configuration c.
func (v *view) check(c *config.Config) []Finding {
	all := append(v.unused(c), v.idle(c)...)
	shared := v.sharing()
	for i := range v.pipelines {
		p := &v.pipelines[i]
		for _, rule := range rules {
			if text := rule.find(p, shared); text != "" {
				all = append(all, Finding{rule.code, p.id, rule.severity, text})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Code, b.Code)) })
	return all
}

// sharing reports whether more than one pipeline uses an instance now.
func (v *view) sharing() func(kind, id string) bool {
	type instance struct{ kind, id string }
	users := map[instance]int{}
	for i := range v.pipelines {
		v.pipelines[i].eachLayer(func(kind, id string, _, on bool) {
			if on {
				users[instance{kind, id}]++
			}
		})
	}
	return func(kind, id string) bool { return users[instance{kind, id}] > 1 }
}

// maxNearest bounds the pairs of ids that are compared to find out what an
// unused one was meant to be: with thousands on both sides the hints are not
// worth the seconds.
const maxNearest = 100_000

// unused finds the instances of the configuration that nobody asked for.
func (v *view) unused(c *config.Config) []Finding {
	used := make(map[string]bool, len(v.ids))
	for _, id := range v.ids {
		used[id] = true
	}
	for i := range v.pipelines { // a shared instance may be switched off everywhere
		v.pipelines[i].eachLayer(func(_, id string, _, _ bool) { used[id] = true })
	}
	all := []Finding{}
	left := maxNearest
	for _, id := range c.Instances() {
		if used[id] {
			continue
		}
		file, line, _ := c.Position(id)
		text := "the configuration has an instance that no pipeline asks for" + place(file, line)
		hint := "build it or remove it"
		if left -= len(v.ids); left >= 0 {
			if near := config.Nearest(id, v.ids); near != "" {
				hint = "did you mean " + strconv.Quote(near) + "?"
			}
		}
		all = append(all, Finding{checkUnused, id, warning, text + ": " + hint})
	}
	return all
}

// idle finds the sections of the configuration that give an instance a layer that
// no pipeline has. The instance is in use: else [view.unused] tells.
func (v *view) idle(c *config.Config) (all []Finding) {
	type layer struct{ kind, id string }
	known, has := map[string]bool{}, map[layer]bool{}
	for i := range v.pipelines {
		p := &v.pipelines[i]
		known[p.id] = true
		p.eachLayer(func(kind, id string, built, _ bool) {
			if built {
				known[id], has[layer{kind, id}], has[layer{kind, p.id}] = true, true, true
			}
		})
	}
	for _, id := range c.Instances() {
		if !known[id] {
			continue
		}
		for _, s := range c.Sections(id) {
			if !has[layer{s.Policy, id}] {
				all = append(all, Finding{checkIdle, id, warning, "no pipeline has the layer of " + s.Path + place(s.File, s.Line) +
					": New takes layers from code alone: name it there, use Configured, or remove the section"})
			}
		}
	}
	return all
}

// place is where something of the configuration stands, in brackets.
func place(file string, line int) string {
	switch {
	case line > 0:
		return " (" + file + ":" + strconv.Itoa(line) + ")"
	case file != "":
		return " (" + file + ")"
	default:
		return ""
	}
}

func bulkheadWait(p *viewed, _ func(kind, id string) bool) string {
	wait := p.bulkhead.Config.MaxWait
	if !p.bulkhead.on || wait <= 0 || p.slots.Queue == 0 {
		return ""
	}
	switch {
	case p.timeout.on && p.timeout.Config.Func == nil && wait >= p.timeout.Config.Value:
		return fmt.Sprintf("bulkhead wait %v can never be served inside timeout %v, which the wait counts against: give a wait below the timeout, or a longer timeout",
			wait, p.timeout.Config.Value)
	case p.retry.on && p.attempts.MaxDuration > 0 && wait >= p.attempts.MaxDuration-p.attempts.Reserve:
		return fmt.Sprintf("bulkhead wait %v can never be served inside %s: give a shorter wait, or a longer maxDuration", wait, p.total())
	}
	return ""
}

func limiterWait(p *viewed, _ func(kind, id string) bool) string {
	wait := p.limiter.Config.MaxWait
	if !p.limiter.on || !p.retry.on || p.attempts.MaxDuration == 0 || wait < p.attempts.MaxDuration-p.attempts.Reserve {
		return ""
	}
	return fmt.Sprintf("rate limiter wait %v can never be served inside %s: give a shorter wait, or a longer maxDuration", wait, p.total())
}

// noSecondAttempt looks whether a first attempt that uses its whole timeout, or
// takes no time at all, leaves room for the delay and something more.
func noSecondAttempt(p *viewed, _ func(kind, id string) bool) string {
	c := &p.attempts
	if !p.retry.on || c.MaxDuration == 0 || c.MaxAttempts == 1 || c.DelayFunc != nil {
		return ""
	}
	delay := c.Delay
	if c.MaxDelay > 0 {
		delay = min(delay, c.MaxDelay)
	}
	if c.FullJitter {
		delay = 0
	} else if c.Jitter > 0 {
		delay = time.Duration(float64(delay) * (1 - c.Jitter))
	}
	left := c.MaxDuration - c.Reserve
	if delay >= left {
		return fmt.Sprintf("%s leaves no room for a second attempt: the delay before it is at least %v: give a shorter delay, or a longer maxDuration", p.total(), delay)
	}
	if !p.timeout.on || p.timeout.Config.Func != nil {
		return ""
	}
	first := p.timeout.Config.Value
	if first < left-delay { // no sum: it could overflow
		return ""
	}
	return fmt.Sprintf("%s leaves no room for a second attempt after one that times out: timeout %v + delay %v = %v: give a shorter timeout, or a longer maxDuration",
		p.total(), first, delay, saturated(first, delay))
}

// storm looks for retries that come at once, however many, to a limit that others
// need as well.
func storm(p *viewed, shared func(kind, id string) bool) string {
	c := &p.attempts
	if !p.retry.on || c.MaxAttempts == 1 || c.Budget != nil || c.DelayFunc != nil || c.Delay > 0 {
		return ""
	}
	var what string
	switch {
	case p.limiter.on && shared(limiters.name, p.limiter.id):
		what = "rate limiter " + strconv.Quote(p.limiter.id)
	case p.bulkhead.on && shared(bulkheads.name, p.bulkhead.id):
		what = "bulkhead " + strconv.Quote(p.bulkhead.id)
	default:
		return ""
	}
	attempts := "an unlimited number of attempts"
	if c.MaxAttempts > 0 {
		attempts = fmt.Sprintf("%d attempts", c.MaxAttempts)
	}
	return fmt.Sprintf("the retry makes %s with delay 0s and no budget on the %s, which other pipelines share: give a delay or a budget, so that failures do not take the limit from the others", attempts, what)
}

// selfRefusal looks for an async attempt whose predecessor may hold the only slot
// although it has timed out.
func selfRefusal(p *viewed, _ func(kind, id string) bool) string {
	bounded := p.timeout.on || p.retry.on && p.attempts.MaxDuration > 0
	if !p.retry.on || !p.bulkhead.on || !bounded || p.attempts.MaxAttempts == 1 ||
		p.slots.MaxConcurrent != 1 || p.bulkhead.Config.FreeOnTimeout {
		return ""
	}
	if p.slots.Queue != 0 && p.bulkhead.Config.MaxWait != 0 {
		return ""
	}
	return "bulkhead limit 1, no waiting, and a retry: an asynchronous attempt that timed out holds its slot until its function returns, " +
		"so the next attempt may be refused by its own predecessor: let it wait, raise the limit, or give FreeOnTimeout"
}

// noLayer looks for a pipeline that neither code nor the configuration gives a
// layer. One whose layers are switched off is as somebody wants it.
func noLayer(p *viewed, _ func(kind, id string) bool) string {
	if !p.stack.Plain {
		return ""
	}
	return "the pipeline has no layer: it protects nothing and counts nothing: add a policy in code, or, for Configured, in the configuration"
}

// total names MaxDuration and what is reserved of it.
func (p *viewed) total() string {
	text := "maxDuration " + p.attempts.MaxDuration.String()
	if p.attempts.Reserve > 0 {
		text += fmt.Sprintf(" - reserve %v = %v", p.attempts.Reserve, p.attempts.MaxDuration-p.attempts.Reserve)
	}
	return text
}

func saturated(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<63 - 1
}
