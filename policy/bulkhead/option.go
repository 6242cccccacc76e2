package bulkhead

import (
	"slices"
	"strconv"
	"time"
)

// Option changes one setting of a [Config]. Options are comparable, and print
// as the call that made them.
type Option interface{ apply(*Config) }

// MaxConcurrent sets how many calls may be inside at once, at least 1.
func MaxConcurrent(n int) Option { return maxConcurrentOption(n) }

// Queue lets n calls wait for a slot. Without [MaxWait] they wait as long as
// their contexts allow. 0 means no waiting, whatever MaxWait says; -1 any number.
func Queue(n int) Option { return queueOption(n) }

// MaxWait lets calls wait for a slot, each at most d. Without [Queue] any number
// of them may wait. 0 means no waiting, whatever Queue says; -1 (one nanosecond
// below zero) as long as their contexts allow.
func MaxWait(d time.Duration) Option { return maxWaitOption(d) }

// FreeOnTimeout frees the slot of an asynchronous call at any early end of its
// future: at its timeout, when it is cancelled, when its caller's context ends.
// By default the slot is held until the function has really returned, because it
// stands for work that is running.
func FreeOnTimeout() Option { return freeOnTimeoutOption{} }

// Name makes the layer use the bulkhead of the given id instead of the
// pipeline's, and so share its slots with all that do so. It changes no field of
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
// On a Config that says nothing about waiting yet (Queue and MaxWait both zero),
// options that give only one of the two set the other to -1, no bound of this
// kind. The names returned tell apart what was given from what was completed so.
func (c *Config) Apply(opts ...Option) (keys []string) {
	silent := c.Queue == 0 && c.MaxWait == 0
	for _, o := range opts {
		if o == nil {
			continue
		}
		o.apply(c)
		if key := keyOf(o); key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if !silent {
		return keys
	}
	queue, wait := slices.Contains(keys, "queue"), slices.Contains(keys, "maxWait")
	switch {
	case queue && !wait:
		c.MaxWait = Unbounded
	case wait && !queue:
		c.Queue = Unbounded
	}
	return keys
}

// keyOf is the setting that o gives, or "" for Name.
func keyOf(o Option) string {
	switch o.(type) {
	case maxConcurrentOption:
		return "maxConcurrent"
	case queueOption:
		return "queue"
	case maxWaitOption:
		return "maxWait"
	case freeOnTimeoutOption:
		return "freeOnTimeout"
	}
	return ""
}

type maxConcurrentOption int

func (o maxConcurrentOption) apply(c *Config) { c.MaxConcurrent = int(o) }
func (o maxConcurrentOption) String() string  { return "MaxConcurrent(" + strconv.Itoa(int(o)) + ")" }

type queueOption int

func (o queueOption) apply(c *Config) { c.Queue = int(o) }
func (o queueOption) String() string  { return "Queue(" + strconv.Itoa(int(o)) + ")" }

type maxWaitOption time.Duration

func (o maxWaitOption) apply(c *Config) { c.MaxWait = time.Duration(o) }
func (o maxWaitOption) String() string  { return "MaxWait(" + time.Duration(o).String() + ")" }

type freeOnTimeoutOption struct{}

func (freeOnTimeoutOption) apply(c *Config) { c.FreeOnTimeout = true }
func (freeOnTimeoutOption) String() string  { return "FreeOnTimeout()" }

type nameOption string

func (nameOption) apply(*Config)    {}
func (o nameOption) String() string { return "Name(" + strconv.Quote(string(o)) + ")" }
