package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// figures are the samples of one benchmark, one a pass.
type figures struct{ ns, bytes, allocs []float64 }

// measured is all samples, and what go test says about the machine.
type measured struct {
	sides map[side]*figures
	about map[string]string
}

func parse(r io.Reader) (measured, error) {
	m := measured{sides: map[side]*figures{}, about: map[string]string{}}
	for in := benchfmt.NewReader(r, "samples"); in.Scan(); {
		switch rec := in.Result().(type) {
		case *benchfmt.SyntaxError:
			return m, rec
		case *benchfmt.Result:
			if err := m.add(rec); err != nil {
				return m, err
			}
		}
	}
	return m, nil
}

func (m *measured) add(r *benchfmt.Result) error {
	base, parts := r.Name.Parts()
	s := side{bench: string(base), cpu: 1}
	for _, p := range parts {
		if lib, ok := strings.CutPrefix(string(p), "/lib="); ok {
			s.lib = lib
		} else if cpu, ok := strings.CutPrefix(string(p), "-"); ok {
			n, err := strconv.Atoi(cpu)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
			s.cpu = n
		}
	}
	f := m.sides[s]
	if f == nil {
		f = &figures{}
		m.sides[s] = f
	}
	for unit, list := range map[string]*[]float64{"sec/op": &f.ns, "B/op": &f.bytes, "allocs/op": &f.allocs} {
		v, ok := r.Value(unit)
		if !ok {
			return fmt.Errorf("%s has no %s", r.Name, unit)
		}
		if unit == "sec/op" {
			v *= 1e9
		}
		*list = append(*list, v)
	}
	for _, key := range []string{"goos", "goarch", "cpu"} {
		m.about[key] = strings.TrimSpace(r.GetConfig(key))
	}
	return nil
}

// result is a row with its figures: medians over the passes. The ratio is taken
// pass by pass, since the two sides of a pass ran next to each other.
type result struct {
	row
	oursNs, theirsNs         float64
	medianRatio, low, high   float64 // low and high: quartiles
	medianExtra              float64 // ns that ours takes longer
	oursAllocs, theirsAllocs float64
	oursBytes, theirsBytes   float64
}

func evaluate(rows []row, m measured) ([]result, error) {
	list := make([]result, 0, len(rows))
	for _, r := range rows {
		a, b := m.sides[r.ours], m.sides[r.theirs]
		if a == nil || b == nil {
			return nil, fmt.Errorf("row %q: no samples of %v or of %v", r.name, r.ours, r.theirs)
		}
		if len(a.ns) != len(b.ns) {
			return nil, fmt.Errorf("row %q: %d samples of ours and %d of theirs", r.name, len(a.ns), len(b.ns))
		}
		ratios, extras := make([]float64, len(a.ns)), make([]float64, len(a.ns))
		for i := range a.ns {
			ratios[i], extras[i] = b.ns[i]/a.ns[i], a.ns[i]-b.ns[i]
		}
		list = append(list, result{
			row: r, oursNs: quantile(a.ns, .5), theirsNs: quantile(b.ns, .5),
			medianRatio: quantile(ratios, .5), low: quantile(ratios, .25), high: quantile(ratios, .75),
			medianExtra: quantile(extras, .5),
			oursAllocs:  quantile(a.allocs, .5), theirsAllocs: quantile(b.allocs, .5),
			oursBytes: quantile(a.bytes, .5), theirsBytes: quantile(b.bytes, .5),
		})
	}
	return list, nil
}

// quantile interpolates between the samples.
func quantile(samples []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(samples))
	at := q * float64(len(s)-1)
	i := int(at)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

// slack are bytes that a benchmark may count over those of the call: the runtime
// and the wheel's ticks allocate meanwhile. The gates in go test have none.
const slack = 4

// verdict is what the last column says.
func (r result) verdict() string {
	var missed []string
	if r.ratio != 0 && r.medianRatio < r.ratio {
		missed = append(missed, "time")
	}
	if r.extra != 0 && r.medianExtra > r.extra {
		missed = append(missed, "time")
	}
	if r.gated && r.oursAllocs > r.allocs {
		missed = append(missed, "allocations")
	}
	if r.gated && r.oursBytes > r.bytes+slack {
		missed = append(missed, "bytes")
	}
	switch {
	case len(missed) > 0:
		return "missed: " + strings.Join(missed, ", ")
	case r.target == target{}:
		return ""
	default:
		return "reached"
	}
}

func (r result) missed() bool { return strings.HasPrefix(r.verdict(), "missed") }

// goal is the target as text.
func (r result) goal() string {
	var parts []string
	if r.ratio != 0 {
		parts = append(parts, fmt.Sprintf("≥ %gx", r.ratio))
	}
	if r.extra != 0 {
		parts = append(parts, fmt.Sprintf("≤ %g ns more", r.extra))
	}
	if r.gated {
		parts = append(parts, fmt.Sprintf("%g/%g B", r.allocs, r.bytes))
	}
	return strings.Join(parts, ", ")
}
