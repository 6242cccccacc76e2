package config

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"

	"resilience4cata.dev/go/policy"
)

// Error is one mistake in a configuration; list them with
// [policy.ConfigErrors].
type Error = policy.ConfigError

// maxMistakes ends the collecting: a reader who is shown a thousand mistakes has
// the wrong file, and a hostile one could otherwise make us write gigabytes.
const maxMistakes = 1000

// place is where something stands in a file. The zero place is unknown.
type place struct{ line, col int }

// report collects mistakes.
type report struct {
	file string
	errs []*Error
	seen map[mistakeKey]bool
	full bool
}

// add notes a mistake, unless the same one was noted for the same place: what
// stands under an anchor is read once for each of its aliases.
func (r *report) add(e Error) {
	if r.full {
		return
	}
	if e.File == "" {
		e.File = r.file
	}
	nameOwner(&e)
	if k := (mistakeKey{e.File, e.Line, e.Col, e.Code, e.Got}); e.Line > 0 {
		if r.seen[k] {
			return
		}
		if r.seen == nil {
			r.seen = map[mistakeKey]bool{}
		}
		r.seen[k] = true
	}
	r.errs = append(r.errs, &e)
	if len(r.errs) == maxMistakes {
		r.full = true
	}
}

// nameOwner fills in the instance and the policy that the path of a file or the
// environment leads through, if they are not there yet.
func nameOwner(e *Error) {
	if e.ID != "" || e.Policy != "" || e.Path == "" {
		return
	}
	steps, _, problem := readPath(e.Path + "=")
	if problem != "" || len(steps) < 2 {
		return
	}
	if steps[0].text == topInstances {
		e.ID = steps[1].text
	}
	if len(steps) > 2 {
		if i := sectionIndex(steps[2].text); i >= 0 {
			e.Policy = sections[i].policy
		}
	}
}

// mistakeKey tells mistakes apart.
type mistakeKey struct {
	file      string
	line, col int
	code, got string
}

// finish returns the mistakes, sorted by position and joined; nil without any.
func (r *report) finish() error {
	if len(r.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(r.errs, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(b2i(a.File == envFile), b2i(b.File == envFile)),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Got, b.Got),
		)
	})
	if r.full {
		r.errs = append(r.errs, &Error{
			Code: codeLimit, File: r.file,
			Got: "there are more than " + strconv.Itoa(maxMistakes) + " mistakes", Hint: "mend these first",
		})
	}
	joined := make([]error, len(r.errs))
	for i, e := range r.errs {
		e.File = sourceOf(e.File)
		joined[i] = e
	}
	return errors.Join(joined...)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// quote writes s between quotes, shortened if it is long.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		return strconv.Quote(s[:cut]) + "…"
	}
	return strconv.Quote(s)
}
