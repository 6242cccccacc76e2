package bench_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"resilience4cata.dev/go/bench"
)

func TestReasonsFileIsReadable(t *testing.T) {
	if _, err := bench.ReadReasons("reasons.txt"); err != nil {
		t.Error(err)
	}
}

func TestReasonsAreFoundByRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reasons.txt")
	if err := os.WriteFile(path, []byte("# comment\n\na row | it is slow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := bench.ReadReasons(path)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Missed([]string{"a row", "another"})
	for _, want := range []string{"**a row**: it is slow", "**another**: no reason is given"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestReasonsWithoutBarAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reasons.txt")
	if err := os.WriteFile(path, []byte("\nonly a name\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bench.ReadReasons(path); err == nil || !strings.Contains(err.Error(), ":2:") {
		t.Errorf("error %v does not name line 2", err)
	}
}
