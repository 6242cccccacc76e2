package config

import (
	"math"
	"slices"
)

// kind is what a value must look like.
type kind uint8

const (
	kindDuration kind = iota // Go duration text, "100ms"; a bare 0
	kindInt                  // a plain decimal number
	kindFloat                // a decimal number
	kindBool                 // true or false
	kindWord                 // one of attribute.words
	kindID                   // the id of an instance
)

// unlimited is the word of the file for the -1 of the plain Config structs.
const unlimited = "unlimited"

// interval is the numbers that a value may be; durations count in nanoseconds.
type interval struct {
	lo, hi float64
	open   bool   // lo itself is excluded
	text   string // as the reference says it
}

func (i interval) holds(v float64) bool {
	return v >= i.lo && v <= i.hi && (!i.open || v > i.lo)
}

var (
	positive = interval{0, math.Inf(1), true, "above 0"}
	atLeast0 = interval{0, math.Inf(1), false, "at least 0"}
	atLeast1 = interval{1, math.Inf(1), false, "at least 1"}
	share    = interval{0, 1, false, "from 0 to 1"}
	shareOf  = interval{0, 1, true, "above 0, at most 1"}
)

// attribute is one row of the table: a key of a policy's section. The table is
// the only place that knows the keys: the binder, the schema, the paths of the
// environment, the reference page and the settings are read off it.
type attribute struct {
	key      string   // "value"; "budget.ratio" inside a section of its own
	kind     kind     //
	unit     string   // what the number counts; "" where the kind says it
	in       interval // what a single value may be, whatever the others are
	words    []string // kindWord: the legal words
	endless  bool     // the word "unlimited" is legal too and means -1
	initial  string   // the built-in default as text; "" if there is none
	example  string   // of a value that must be set, what it may be; "" for others
	layer    bool     // belongs to the layer, not to the shared instance (G-1)
	inFile   bool     // true: no field of Config, the registry reads it (name, enabled)
	code     string   // the error code of a value out of range
	synonyms []string // what other libraries call it
	doc      string   // one sentence for the reference and the schema
}

// section is one policy: the name of its section and its keys.
type section struct {
	key      string // in the file: "rateLimiter"
	policy   string // as errors and events name it: "ratelimit"
	synonyms []string
	doc      string
	attrs    []attribute
}

// sections is the table, in the order of the layers from the outside in.
var sections = [...]section{
	{
		key: "retry", policy: "retry", synonyms: []string{"retries", "retrying"},
		doc: "Calls the function again after a failure.",
		attrs: []attribute{
			{
				key: "maxAttempts", kind: kindInt, unit: "calls", in: atLeast1, endless: true, initial: "3", layer: true, code: codeRange,
				synonyms: []string{"attempts", "retries", "maxRetries", "maxRetryAttempts"},
				doc:      "How often the function is called at most, the first call included.",
			},
			{
				key: "backoff", kind: kindWord, words: []string{"constant", "linear", "exponential"}, initial: "exponential", layer: true, code: codeType,
				synonyms: []string{"strategy"},
				doc:      "How the delay grows from one attempt to the next.",
			},
			{
				key: "delay", kind: kindDuration, in: atLeast0, initial: "100ms", layer: true, code: codeRange,
				synonyms: []string{"wait", "waitDuration", "interval", "initialInterval", "base"},
				doc:      "The delay before the second attempt; 0 retries at once.",
			},
			{
				key: "factor", kind: kindFloat, in: atLeast0, initial: "2", layer: true, code: codeRange,
				synonyms: []string{"multiplier", "exponentialBackoffMultiplier"},
				doc:      "What an exponential delay is multiplied by after each attempt; at least 1 if backoff is exponential.",
			},
			{
				key: "maxDelay", kind: kindDuration, in: atLeast0, initial: "30s", layer: true, code: codeRange,
				synonyms: []string{"maxInterval", "maxBackoff", "exponentialMaxWaitDuration"},
				doc:      "The longest delay, also of what a server asks for.",
			},
			{
				key: "jitter", kind: kindFloat, in: share, initial: "0", layer: true, code: codeRange,
				synonyms: []string{"randomizedWaitFactor"},
				doc:      "Spreads a delay evenly over delay × [1−jitter, 1+jitter].",
			},
			{
				key: "fullJitter", kind: kindBool, initial: "false", layer: true, code: codeRange,
				doc: "Spreads a delay evenly over [0, delay].",
			},
			{
				key: "maxDuration", kind: kindDuration, in: atLeast0, initial: "0s", layer: true, code: codeRange,
				synonyms: []string{"deadline", "budgetTime"},
				doc:      "One deadline for the whole call: attempts, waits and delays; 0 for none.",
			},
			{
				key: "reserve", kind: kindDuration, in: atLeast0, initial: "0s", layer: true, code: codeRange,
				doc: "What is kept back from the deadline when deciding whether another attempt fits.",
			},
			{
				key: "budget.ratio", kind: kindFloat, in: atLeast0, code: codeRange,
				doc: "Retries per call, over the last 10 s, that the budget allows. No budget unless this or minPerSecond is set.",
			},
			{
				key: "budget.minPerSecond", kind: kindFloat, unit: "retries per second", in: atLeast0, code: codeRange,
				doc: "Retries that the budget allows however few calls there are.",
			},
		},
	},
	{
		key: "circuitBreaker", policy: "circuitbreaker", synonyms: []string{"breaker", "circuit"},
		doc: "Refuses calls to a dependency that keeps failing.",
		attrs: []attribute{
			{
				key: "failureRatio", kind: kindFloat, in: shareOf, initial: "0.5", code: codeRange,
				synonyms: []string{"failureRate", "failureRateThreshold", "failureThreshold"},
				doc:      "The share of failures at which the breaker opens.",
			},
			{
				key: "minCalls", kind: kindInt, unit: "calls", in: atLeast1, initial: "20", code: codeRange,
				synonyms: []string{"minimumNumberOfCalls", "requestVolumeThreshold", "minimumThroughput"},
				doc:      "How many calls the window must hold before the ratio means anything.",
			},
			{
				key: "window", kind: kindInt, unit: "calls", in: interval{1, 1 << 20, false, "from 1 to 1048576"}, initial: "100", code: codeRange,
				synonyms: []string{"slidingWindowSize", "countWindow"},
				doc:      "The last calls that count. Of window and timeWindow the one set at the higher level holds.",
			},
			{
				key: "timeWindow", kind: kindDuration, in: atLeast0, initial: "0s", code: codeRange,
				synonyms: []string{"samplingDuration"},
				doc:      "The calls of this last span count, instead of a number of them; 0 for window.",
			},
			{
				key: "openFor", kind: kindDuration, in: atLeast0, initial: "5s", code: codeRange,
				synonyms: []string{"waitDurationInOpenState", "sleepWindow", "breakDuration", "openTimeout"},
				doc:      "How long the breaker stays open before it lets a probe through.",
			},
			{
				key: "halfOpenCalls", kind: kindInt, unit: "calls", in: interval{1, math.MaxInt32, false, "at least 1"}, initial: "1", code: codeRange,
				synonyms: []string{"permittedNumberOfCallsInHalfOpenState", "maxRequests"},
				doc:      "How many probes decide whether the breaker closes again.",
			},
			{
				key: "slowCall", kind: kindDuration, in: atLeast0, initial: "0s", code: codeRange,
				synonyms: []string{"slowCallDuration", "slowCallDurationThreshold"},
				doc:      "A call that takes this long or longer is slow; 0: none is.",
			},
			{
				key: "slowRatio", kind: kindFloat, in: share, initial: "0", code: codeRange,
				synonyms: []string{"slowCallRatio", "slowCallRateThreshold"},
				doc:      "The share of slow calls at which the breaker opens; needed with slowCall.",
			},
			{
				key: "countRejections", kind: kindBool, initial: "false", code: codeRange,
				doc: "Counts refusals by the limiter and the bulkhead as failures.",
			},
		},
	},
	{
		key: "rateLimiter", policy: "ratelimit", synonyms: []string{"rateLimit", "limiter", "throttle", "rate"},
		doc: "Admits so many calls per period.",
		attrs: []attribute{
			{
				key: "limit", kind: kindInt, unit: "calls", in: atLeast1, example: "50", code: codeRange,
				synonyms: []string{"limitForPeriod", "permitLimit", "perSecond", "rate"},
				doc:      "How many calls are admitted per period. Must be set.",
			},
			{
				key: "period", kind: kindDuration, in: positive, initial: "1s", code: codeRange,
				synonyms: []string{"limitRefreshPeriod", "per", "window"},
				doc:      "The span that limit is for.",
			},
			{
				key: "burst", kind: kindInt, unit: "calls", in: atLeast1, code: codeRange,
				doc: "How many calls are admitted at once after an idle spell. The limit where it is set nowhere.",
			},
			{
				key: "maxWait", kind: kindDuration, in: atLeast0, initial: "0s", layer: true, code: codeRange,
				synonyms: []string{"timeoutDuration", "maxWaitDuration"},
				doc:      "How long a call may wait for its turn; 0 refuses at once.",
			},
		},
	},
	{
		key: "timeout", policy: "timeout", synonyms: []string{"timeLimiter", "deadline", "timeouts"},
		doc: "Bounds how long one attempt may take.",
		attrs: []attribute{
			{
				key: "value", kind: kindDuration, in: positive, example: "2s", code: codeTimeout,
				synonyms: []string{"timeout", "duration", "timeoutDuration", "after"},
				doc:      "How long an attempt may take. Must be set, here or in code.",
			},
		},
	},
	{
		key: "bulkhead", policy: "bulkhead", synonyms: []string{"semaphore", "concurrency", "concurrencyLimiter"},
		doc: "Admits so many calls at the same time.",
		attrs: []attribute{
			{
				key: "maxConcurrent", kind: kindInt, unit: "calls", in: atLeast1, example: "10", code: codeRange,
				synonyms: []string{"maxConcurrentCalls", "limit", "permits", "maxParallelization"},
				doc:      "How many calls may be inside at once. Must be set.",
			},
			{
				key: "queue", kind: kindInt, unit: "calls", in: atLeast0, endless: true, initial: "0", code: codeRange,
				synonyms: []string{"queueSize", "maxQueue", "queueCapacity", "maxQueuingActions"},
				doc:      "How many calls may wait for a slot. If only maxWait is set: unlimited.",
			},
			{
				key: "maxWait", kind: kindDuration, in: atLeast0, endless: true, initial: "0s", layer: true, code: codeRange,
				synonyms: []string{"maxWaitDuration", "queueTimeout"},
				doc:      "How long a call may wait for a slot. If only queue is set: unlimited.",
			},
			{
				key: "freeOnTimeout", kind: kindBool, initial: "false", layer: true, code: codeRange,
				doc: "Frees the slot of an asynchronous call at its timeout although its function still runs.",
			},
		},
	},
}

// common are the keys that every policy has; a timeout has no name.
var (
	enabledAttr = attribute{
		key: "enabled", kind: kindBool, initial: "true", layer: true, inFile: true, code: codeEnabled,
		synonyms: []string{"enable", "active"},
		doc:      "false takes the layer out.",
	}
	nameAttr = attribute{
		key: "name", kind: kindID, layer: true, inFile: true, code: codeID,
		synonyms: []string{"instance", "share", "ref"},
		doc:      "The shared instance that this layer uses instead of its own.",
	}
)

// instanceKeys are the keys of an instance that are no policies.
var (
	configAttr = attribute{
		key: "config", kind: kindID, inFile: true, code: codeID,
		synonyms: []string{"baseConfig", "base", "extends"},
		doc:      "The section of configs that this instance builds on.",
	}
	criticalAttr = attribute{
		key: "critical", kind: kindBool, initial: "false", inFile: true, code: codeType,
		doc: "true makes the health answer fail, instead of warn, while this instance is impaired.",
	}
)

func init() {
	for i := range sections {
		s := &sections[i]
		s.attrs = append(s.attrs, enabledAttr)
		if s.policy != "timeout" {
			s.attrs = append(s.attrs, nameAttr)
		}
	}
}

// find returns the attribute of the given key, or nil.
func (s *section) find(key string) *attribute {
	if i := slices.IndexFunc(s.attrs, func(a attribute) bool { return a.key == key }); i >= 0 {
		return &s.attrs[i]
	}
	return nil
}

// sectionIndex returns the index in sections of the given file key, or -1.
func sectionIndex(key string) int {
	return slices.IndexFunc(sections[:], func(s section) bool { return s.key == key })
}

// policyIndex returns the index in sections of the given policy.
func policyIndex(policy string) int {
	return slices.IndexFunc(sections[:], func(s section) bool { return s.policy == policy })
}
