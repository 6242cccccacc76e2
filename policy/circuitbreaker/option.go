package circuitbreaker

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Option changes one setting of a [Config]. Options are data: they may be
// printed, kept, and given to several pipelines. Mistakes come out of
// [Config.Validate], not of the option.
type Option interface {
	fmt.Stringer
	apply(*Config)
	keys() []string // of the configuration file
}

// FailureRatio sets the share of failures that opens the breaker, above 0 and
// at most 1. Default .5.
func FailureRatio(r float64) Option { return failureRatio(r) }

type failureRatio float64

func (o failureRatio) apply(c *Config) { c.FailureRatio = float64(o) }
func (o failureRatio) keys() []string  { return []string{"failureRatio"} }
func (o failureRatio) String() string  { return "failureRatio(" + number(float64(o)) + ")" }

// MinCalls sets how many samples the window must hold before the breaker may
// open, at least 1. Default 20.
func MinCalls(n int) Option { return minCalls(n) }

type minCalls int

func (o minCalls) apply(c *Config) { c.MinCalls = int(o) }
func (o minCalls) keys() []string  { return []string{"minCalls"} }
func (o minCalls) String() string  { return "minCalls(" + strconv.Itoa(int(o)) + ")" }

// CountWindow makes the last n samples count, however old, and takes back a
// TimeWindow. Default 100.
func CountWindow(n int) Option { return countWindowOf(n) }

type countWindowOf int

func (o countWindowOf) apply(c *Config) { c.Window, c.TimeWindow = int(o), 0 }
func (o countWindowOf) keys() []string  { return []string{"window", "timeWindow"} }
func (o countWindowOf) String() string  { return "countWindow(" + strconv.Itoa(int(o)) + ")" }

// TimeWindow makes the samples of the last d count, however many, in place of
// the last [CountWindow] samples. It moves in tenths of d. A breaker with a time
// window reads the clock for every sample.
func TimeWindow(d time.Duration) Option { return timeWindowOf(d) }

type timeWindowOf time.Duration

func (o timeWindowOf) apply(c *Config) { c.TimeWindow = time.Duration(o) }
func (o timeWindowOf) keys() []string  { return []string{"timeWindow"} }
func (o timeWindowOf) String() string  { return "timeWindow(" + time.Duration(o).String() + ")" }

// OpenFor sets how long the breaker stays open before probes are let through.
// Default 5 s; 0: it refuses nobody.
func OpenFor(d time.Duration) Option { return openFor(d) }

type openFor time.Duration

func (o openFor) apply(c *Config) { c.OpenFor = time.Duration(o) }
func (o openFor) keys() []string  { return []string{"openFor"} }
func (o openFor) String() string  { return "openFor(" + time.Duration(o).String() + ")" }

// HalfOpenCalls sets how many probes decide whether the breaker closes again,
// at least 1. Default 1.
func HalfOpenCalls(n int) Option { return halfOpenCalls(n) }

type halfOpenCalls int

func (o halfOpenCalls) apply(c *Config) { c.HalfOpenCalls = int(o) }
func (o halfOpenCalls) keys() []string  { return []string{"halfOpenCalls"} }
func (o halfOpenCalls) String() string  { return "halfOpenCalls(" + strconv.Itoa(int(o)) + ")" }

// SlowCall makes calls that take d or longer slow ones, and opens the breaker
// when their share reaches ratio, which is above 0 and at most 1. Default: no
// call is slow. With it the breaker reads the clock twice a call.
func SlowCall(d time.Duration, ratio float64) Option { return slowCall{d, ratio} }

type slowCall struct {
	d     time.Duration
	ratio float64
}

func (o slowCall) apply(c *Config) { c.SlowCall, c.SlowRatio = o.d, o.ratio }
func (o slowCall) keys() []string  { return []string{"slowCall", "slowRatio"} }
func (o slowCall) String() string  { return "slowCall(" + o.d.String() + ", " + number(o.ratio) + ")" }

// FailIf sets what decides whether an error is a failure, in place of "every
// error is"; nil takes that back. f must be safe for concurrent use. Where the
// result's value matters too, use the pipeline builder's FailIf.
func FailIf(f func(error) bool) Option { return failIf{f} }

type failIf struct{ f func(error) bool }

func (o failIf) apply(c *Config) { c.FailIf = o.f }
func (o failIf) keys() []string  { return []string{"failIf"} }
func (o failIf) String() string  { return "failIf(func)" }

// Ignore adds errors that are no sample, compared with errors.Is. It wins over
// [FailIf]. Two Ignore options add up.
func Ignore(errs ...error) Option { return ignore{slices.Clone(errs)} }

type ignore struct{ errs []error }

// A fresh list: the one that c has may be another Config's too.
func (o ignore) apply(c *Config) { c.Ignore = slices.Concat(c.Ignore, o.errs) }
func (o ignore) keys() []string  { return []string{"ignore"} }
func (o ignore) String() string  { return fmt.Sprintf("ignore%q", o.errs) }

// CountRejections makes refusals of the pipeline's limiter and bulkhead count
// as failures. Default: they are no samples, because they say nothing about the
// service that is being called.
func CountRejections() Option { return countRejections{} }

type countRejections struct{}

func (o countRejections) apply(c *Config) { c.CountRejections = true }
func (o countRejections) keys() []string  { return []string{"countRejections"} }
func (o countRejections) String() string  { return "countRejections()" }

// Name gives the breaker an id of its own, so that several pipelines share it;
// without it the breaker has the pipeline's id. It changes no setting.
func Name(id string) Option { return name(id) }

type name string

func (o name) apply(*Config)  {}
func (o name) keys() []string { return nil }
func (o name) String() string { return "name(" + strconv.Quote(string(o)) + ")" }

// NameOf returns the id of the last [Name] among opts; ok is false if there is
// none. It is for builders of pipelines.
func NameOf(opts ...Option) (id string, ok bool) {
	for _, o := range slices.Backward(opts) {
		if n, is := o.(name); is {
			return string(n), true
		}
	}
	return "", false
}
