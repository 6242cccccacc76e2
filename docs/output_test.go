package docs_test

import (
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A snippet with its origin, and the first indented block between it and the next
// one or the next heading.
var (
	snippet  = regexp.MustCompile("(?s)<!-- from: (\\S+) Example(\\w*) -->\n```go\n.*?\n```\n(.*?)(?:<!-- from: |\n#|\\z)")
	indented = regexp.MustCompile(`(?m)(?:^    .*\n)+`)
)

// What a page shows as the output of a snippet is the output of the example that
// the snippet is, which the tests run. A line that ends in … is its beginning.
func TestOutputsOnThePagesAreThoseOfTheExamples(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, name := range append(pages, "../README.md") {
		text := page(t, name)
		for len(text) > 0 {
			at := snippet.FindStringSubmatchIndex(text)
			if at == nil {
				break
			}
			file, example, after := text[at[2]:at[3]], text[at[4]:at[5]], text[at[6]:at[7]]
			text = text[at[7]:]
			block := indented.FindString(after)
			if block == "" {
				continue
			}
			shown++
			got := strings.Split(strings.TrimSpace(outputOf(t, file, example)), "\n")
			want := strings.Split(strings.TrimSpace(block), "\n")
			for i := range want {
				want[i] = strings.TrimPrefix(want[i], "    ")
				if begin, cut := strings.CutSuffix(want[i], "…"); cut && i < len(got) && strings.HasPrefix(got[i], begin) {
					got[i] = want[i]
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, Example%s (-page +output)\n%s", name, example, diff)
			}
		}
	}
	if shown < 6 {
		t.Errorf("%d outputs found, want 6 or more", shown)
	}
}

// outputOf is the output that an example promises.
func outputOf(t *testing.T, file, name string) string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", file), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range doc.Examples(parsed) {
		if e.Name == name {
			return e.Output
		}
	}
	t.Errorf("%s has no Example%s", file, name)
	return ""
}
