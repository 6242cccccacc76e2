package ratelimit

import (
	"slices"
	"strconv"
	"time"
)

// Option changes settings of a [Config]. Options are comparable, and print as
// the call that made them.
type Option interface{ apply(*Config) }

// PerSecond sets the rate to n permits per second; it is Per(n, time.Second).
func PerSecond(n int) Option { return Per(n, time.Second) }

// Per sets the rate to n permits, at least 1, per period, which is above 0.
// Per(1, time.Minute) and Per(60, time.Hour) are the same rate; what differs is
// the burst, which is n unless [Burst] says otherwise.
func Per(n int, period time.Duration) Option { return rateOption{n, period} }

// Burst sets how many permits may be in store, at least 1.
func Burst(n int) Option { return burstOption(n) }

// MaxWait lets calls wait for their permit, each at most d, in the order in which
// they came. 0 means no waiting.
func MaxWait(d time.Duration) Option { return maxWaitOption(d) }

// Name makes the layer use the limiter of the given id instead of the
// pipeline's, and so share its rate with all that do so. It changes no field of
// a Config; package pipeline reads it with [NameOf].
func Name(id string) Option { return nameOption(id) }

// NameOf returns the id of the last [Name] among the options, and whether there
// is one. It is for builders of pipelines.
func NameOf(opts ...Option) (id string, ok bool) {
	for _, o := range opts {
		if n, is := o.(nameOption); is {
			id, ok = string(n), true
		}
	}
	return id, ok
}

// Apply sets the options on c, in order, so that the last one wins, and returns
// the names of the settings they gave (as in the configuration file), each once.
// Nil options are skipped. It validates nothing.
//
// A Burst that was the same as Limit before (both are 0 in [Default]) follows a
// new rate, if no option gives it; "burst" is not among the names then. So a
// merge of several levels in which none gives "burst" ends with Burst = Limit.
func (c *Config) Apply(opts ...Option) (keys []string) {
	follows := c.Burst == c.Limit
	for _, o := range opts {
		if o == nil {
			continue
		}
		o.apply(c)
		for _, key := range keysOf(o) {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	if follows && !slices.Contains(keys, "burst") {
		c.Burst = c.Limit
	}
	return keys
}

// keysOf is the settings that o gives; none for Name.
func keysOf(o Option) []string {
	switch o.(type) {
	case rateOption:
		return []string{"limit", "period"}
	case burstOption:
		return []string{"burst"}
	case maxWaitOption:
		return []string{"maxWait"}
	}
	return nil
}

type rateOption struct {
	n      int
	period time.Duration
}

func (o rateOption) apply(c *Config) { c.Limit, c.Period = o.n, o.period }

func (o rateOption) String() string {
	if o.period == time.Second {
		return "PerSecond(" + strconv.Itoa(o.n) + ")"
	}
	return "Per(" + strconv.Itoa(o.n) + ", " + o.period.String() + ")"
}

type burstOption int

func (o burstOption) apply(c *Config) { c.Burst = int(o) }
func (o burstOption) String() string  { return "Burst(" + strconv.Itoa(int(o)) + ")" }

type maxWaitOption time.Duration

func (o maxWaitOption) apply(c *Config) { c.MaxWait = time.Duration(o) }
func (o maxWaitOption) String() string  { return "MaxWait(" + time.Duration(o).String() + ")" }

type nameOption string

func (nameOption) apply(*Config)    {}
func (o nameOption) String() string { return "Name(" + strconv.Quote(string(o)) + ")" }
