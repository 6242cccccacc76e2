package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/registry/config"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The table of attempts is the same for the three forms, and what docs/timeouts.md says.
func TestTimeoutsAttemptsTable(t *testing.T) {
	inputs := []struct {
		name      string
		failures  int
		permanent bool
	}{
		{"two temporary failures, then a success", 2, false},
		{"temporary failures without end", 9, false},
		{"a permanent failure at once", 1, true},
	}
	text := page(t, "timeouts.md")
	for _, in := range inputs {
		var got []string
		for _, form := range []string{"Execute", "ExecuteAsync", "ExecuteFuture"} {
			got = append(got, attempts(form, in.failures, in.permanent))
		}
		if row := fmt.Sprintf("| %s | 3 | %s |\n", in.name, strings.Join(got, " | ")); !strings.Contains(text, row) {
			t.Errorf("timeouts.md has no row\n%s", row)
		}
	}
}

// The configuration that a page shows is one.
func TestConfigurationOnThePagesParses(t *testing.T) {
	pages, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, p := range pages {
		if !strings.HasSuffix(p.Name(), ".md") || p.Name() == "errors.md" { // which shows mistakes, and has its own test
			continue
		}
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page(t, p.Name()), -1) {
			blocks++
			if _, err := config.Parse(p.Name(), []byte(m[1])); err != nil {
				t.Error(err)
			}
		}
	}
	if blocks == 0 {
		t.Error("no page shows a configuration")
	}
}

// README.md lists every page once, and nothing else.
func TestIndexListsEveryPage(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, f := range files {
		if name := f.Name(); strings.HasSuffix(name, ".md") && name != "README.md" {
			want = append(want, name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| \[[^\]]+\]\(([a-z-]+\.md)\)`).FindAllStringSubmatch(page(t, "README.md"), -1) {
		got = append(got, m[1])
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages in README.md (-want +got):\n%s", diff)
	}
}
