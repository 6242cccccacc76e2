package bulkhead_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/clock"
	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/policy/bulkhead"
)

// B-2: one of Queue and MaxWait alone leaves the other without a bound.
func TestApply_B2_CompletesTheOtherBoundOfAWait(t *testing.T) {
	type opts = []bulkhead.Option
	const ms = time.Millisecond
	for _, tc := range []struct {
		name  string
		base  bulkhead.Config
		calls []opts
		want  bulkhead.Config
		keys  []string // of the last call
	}{
		{"nothing", bulkhead.Config{}, []opts{nil}, bulkhead.Config{}, nil},
		{
			"neither",
			bulkhead.Config{},
			[]opts{{bulkhead.MaxConcurrent(10)}},
			bulkhead.Config{MaxConcurrent: 10},
			[]string{"maxConcurrent"},
		},
		{
			"queue alone",
			bulkhead.Config{},
			[]opts{{bulkhead.Queue(5)}},
			bulkhead.Config{Queue: 5, MaxWait: -1},
			[]string{"queue"},
		},
		{
			"wait alone",
			bulkhead.Config{},
			[]opts{{bulkhead.MaxWait(ms)}},
			bulkhead.Config{Queue: -1, MaxWait: ms},
			[]string{"maxWait"},
		},
		{
			"both",
			bulkhead.Config{},
			[]opts{{bulkhead.MaxWait(ms), bulkhead.Queue(5)}},
			bulkhead.Config{Queue: 5, MaxWait: ms},
			[]string{"maxWait", "queue"},
		},
		{
			"both, no queue",
			bulkhead.Config{},
			[]opts{{bulkhead.Queue(0), bulkhead.MaxWait(ms)}},
			bulkhead.Config{Queue: 0, MaxWait: ms},
			[]string{"queue", "maxWait"},
		},
		{
			"both, no wait",
			bulkhead.Config{},
			[]opts{{bulkhead.Queue(5), bulkhead.MaxWait(0)}},
			bulkhead.Config{Queue: 5, MaxWait: 0},
			[]string{"queue", "maxWait"},
		},
		{
			"one call after the other",
			bulkhead.Config{},
			[]opts{{bulkhead.Queue(5)}, {bulkhead.MaxWait(ms)}},
			bulkhead.Config{Queue: 5, MaxWait: ms},
			[]string{"maxWait"},
		},
		{
			"an explicit zero outlives the next call",
			bulkhead.Config{},
			[]opts{{bulkhead.MaxWait(0)}, {bulkhead.Queue(5)}},
			bulkhead.Config{Queue: 5, MaxWait: 0},
			[]string{"queue"},
		},
		{
			"the same for the queue",
			bulkhead.Config{},
			[]opts{{bulkhead.Queue(0)}, {bulkhead.MaxWait(ms)}},
			bulkhead.Config{Queue: 0, MaxWait: ms},
			[]string{"maxWait"},
		},
		{
			"a config that speaks keeps its other half",
			bulkhead.Config{Queue: 3},
			[]opts{{bulkhead.Queue(5)}},
			bulkhead.Config{Queue: 5, MaxWait: 0},
			[]string{"queue"},
		},
		{"last wins, keys once and in order", bulkhead.Config{}, []opts{{
			bulkhead.Queue(1), bulkhead.MaxConcurrent(1), bulkhead.Queue(2), bulkhead.MaxConcurrent(2), bulkhead.FreeOnTimeout(),
		}}, bulkhead.Config{MaxConcurrent: 2, Queue: 2, MaxWait: -1, FreeOnTimeout: true}, []string{"queue", "maxConcurrent", "freeOnTimeout"}},
		{"a name sets nothing, nil is nothing", bulkhead.Config{}, []opts{{bulkhead.Name("x"), nil}}, bulkhead.Config{}, nil},
	} {
		c := tc.base
		var keys []string
		for _, o := range tc.calls {
			keys = c.Apply(o...)
		}
		if diff := cmp.Diff(tc.want, c); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.name, diff)
		}
		if diff := cmp.Diff(tc.keys, keys); diff != "" {
			t.Errorf("%s: keys (-want +got)\n%s", tc.name, diff)
		}
	}
}

func TestDefaultNeedsALimit(t *testing.T) {
	if diff := cmp.Diff(bulkhead.Config{}, bulkhead.Default()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if bulkhead.Default().Validate() == nil {
		t.Error("the default is valid, but names no limit")
	}
}

// B-6: MaxConcurrent(0) is not legal; every mistake comes out, with its field.
func TestValidate_B6_NamesEveryFieldOutOfRange(t *testing.T) {
	for _, tc := range []struct {
		c    bulkhead.Config
		want []string // paths
	}{
		{bulkhead.Config{MaxConcurrent: 1}, nil},
		{bulkhead.Config{MaxConcurrent: 1, Queue: -1, MaxWait: -1}, nil},
		{bulkhead.Config{MaxConcurrent: math.MaxInt, Queue: math.MaxInt, MaxWait: math.MaxInt64}, nil},
		{bulkhead.Config{}, []string{"maxConcurrent"}},
		{bulkhead.Config{MaxConcurrent: -1}, []string{"maxConcurrent"}},
		{bulkhead.Config{MaxConcurrent: 1, Queue: -2}, []string{"queue"}},
		{bulkhead.Config{MaxConcurrent: 1, MaxWait: -time.Second}, []string{"maxWait"}},
		{bulkhead.Config{MaxConcurrent: 0, Queue: -2, MaxWait: -2}, []string{"maxConcurrent", "queue", "maxWait"}},
	} {
		var paths []string
		for _, e := range policy.ConfigErrors(tc.c.Validate()) {
			paths = append(paths, e.Path)
			if e.Code != "R4C-ATR-003" || e.Policy != "bulkhead" || e.ID != "" || e.Got == "" || e.Hint == "" {
				t.Errorf("%+v: incomplete: %+v", tc.c, e)
			}
		}
		if diff := cmp.Diff(tc.want, paths); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", tc.c, diff)
		}
	}
}

func TestNewReportsEveryMistakeWithItsID(t *testing.T) {
	p, err := bulkhead.New(" x", bulkhead.Config{Queue: -2}, clock.System())
	if p != nil {
		t.Error("New returned a bulkhead and an error")
	}
	var got []string
	for _, e := range policy.ConfigErrors(err) {
		got = append(got, fmt.Sprintf("%s %q %s", e.Code, e.ID, e.Path))
	}
	want := []string{`R4C-ATR-004 " x" id`, `R4C-ATR-003 " x" maxConcurrent`, `R4C-ATR-003 " x" queue`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	_, err = bulkhead.New("x", bulkhead.Config{MaxConcurrent: 1}, nil)
	var e *policy.ConfigError
	if !errors.As(err, &e) || e.Path != "clk" || e.ID != "x" {
		t.Errorf("without a clock: %v", err)
	}
}

// G-1: empty, leading or trailing space is an error; other printable text is legal.
func TestNew_G1_ChecksTheID(t *testing.T) {
	for id, legal := range map[string]bool{
		"reports": true, "a b": true, "com.acme.ReportApi#build(java.lang.String)": true, "a/b": true, "報告": true, "a\u00a0b": true,
		"": false, " ": false, "a ": false, " a": false, "\ta": false, "a\n": false, "a\x00b": false, "a\xffb": false,
	} {
		p, err := bulkhead.New(id, bulkhead.Config{MaxConcurrent: 1}, clock.System())
		if (err == nil) != legal {
			t.Errorf("%q: %v", id, err)
		}
		if legal && p.ID() != id {
			t.Errorf("ID = %q, want %q", p.ID(), id)
		}
		for _, e := range policy.ConfigErrors(err) {
			if e.Code != "R4C-ATR-004" {
				t.Errorf("%q: code %s", id, e.Code)
			}
		}
	}
}

func TestConfigJSONShowsExplicitZerosAndDurationText(t *testing.T) {
	for want, c := range map[string]bulkhead.Config{
		`{"maxConcurrent":10,"queue":0,"maxWait":"0s"}`:                        {MaxConcurrent: 10},
		`{"maxConcurrent":10,"queue":-1,"maxWait":"100ms"}`:                    {MaxConcurrent: 10, Queue: -1, MaxWait: 100 * time.Millisecond},
		`{"maxConcurrent":1,"queue":20,"maxWait":"-1ns","freeOnTimeout":true}`: {MaxConcurrent: 1, Queue: 20, MaxWait: -1, FreeOnTimeout: true},
	} {
		var got, wanted map[string]any
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(json.Unmarshal(text, &got), json.Unmarshal([]byte(want), &wanted)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
	}
}

func TestOptionsPrintAndCompare(t *testing.T) {
	got := fmt.Sprint([]bulkhead.Option{
		bulkhead.MaxConcurrent(10), bulkhead.Queue(20), bulkhead.MaxWait(time.Second), bulkhead.FreeOnTimeout(), bulkhead.Name("x"),
	})
	if want := `[MaxConcurrent(10) Queue(20) MaxWait(1s) FreeOnTimeout() Name("x")]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if bulkhead.Queue(1) != bulkhead.Queue(1) || bulkhead.Queue(1) == bulkhead.MaxConcurrent(1) {
		t.Error("options do not compare by what they say")
	}
}

func TestNameOfIsTheLastName(t *testing.T) {
	if id, ok := bulkhead.NameOf(bulkhead.Queue(1)); ok || id != "" {
		t.Errorf("without a name: %q, %v", id, ok)
	}
	if id, ok := bulkhead.NameOf(bulkhead.Name("a"), bulkhead.Queue(1), bulkhead.Name("b"), nil); !ok || id != "b" {
		t.Errorf("got %q, %v; want the last one", id, ok)
	}
}
