package retry

import "time"

// Schedule is the delay after attempt n.
func (c Config) Schedule(n int, random float64) time.Duration { return schedule(&c, n, random) }

// TestBudget is a budget of its own for tests, in nanoseconds from 1.
type TestBudget struct {
	b *budget
	c BudgetConfig
}

func NewTestBudget(ratio, minPerSecond float64) *TestBudget {
	c := BudgetConfig{ratio, minPerSecond}
	return &TestBudget{newBudget(c, 1), c}
}

func (t *TestBudget) Started(now int64)   { t.b.started(now) }
func (t *TestBudget) Take(now int64) bool { return t.b.take(t.c, now) }

// Marked reports whether a retry would obey a mark of Permanent in err.
func Marked(err error) bool { return marked(err) }
