package retry

import "slices"

// Permanent marks err as one that no retry can heal: the pipeline that the
// function runs under returns it at once. The mark is found in wrapped and
// joined errors too, and is taken off at the edge of that pipeline, so that an
// outer retry decides anew. Permanent(nil) is nil.
//
// A sentinel may be made with it, and keeps its identity:
//
//	var ErrUnknownReport = retry.Permanent(errors.New("unknown report"))
//	…
//	errors.Is(err, ErrUnknownReport) // true for what comes out of the pipeline
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

// permanent is the mark.
type permanent struct{ err error }

func (p *permanent) Error() string { return p.err.Error() }
func (p *permanent) Unwrap() error { return p.err }

// spent is a tree of errors whose marks have been obeyed. It hides them from
// marked and from nothing else: the tree stays whole below it, or a sentinel
// that is itself a mark could no longer be found.
type spent struct{ err error }

func (s *spent) Error() string { return s.err.Error() }
func (s *spent) Unwrap() error { return s.err }

// marked reports whether there is a mark in the tree of err that no retry has
// obeyed yet.
func marked(err error) bool {
	for err != nil {
		switch e := err.(type) { //nolint:errorlint // this is the walk itself
		case *permanent:
			return true
		case *spent:
			return false
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			return slices.ContainsFunc(e.Unwrap(), marked)
		default:
			return false
		}
	}
	return false
}

// Unmarked returns err without the mark of [Permanent], as it comes out of a
// pipeline with a retry. It is for package pipeline.
func Unmarked(err error) error { return strip(err) }

// strip takes the marks off err.
func strip(err error) error {
	if marked(err) {
		return &spent{err}
	}
	return err
}
