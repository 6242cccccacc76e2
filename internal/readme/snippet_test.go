package readme_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/internal/readme"
)

func TestSnippetsReadsOriginAndCode(t *testing.T) {
	got, err := readme.Snippets("a.md", lines(
		"# Title",
		"```sh",
		"<!-- from: not/a/marker.go -->",
		"```",
		"<!-- from: a/example_test.go ExampleA -->",
		"```go",
		"a()",
		"\tb()",
		"```",
		"<!-- from: main.go -->",
		"```go",
		"```",
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []readme.Snippet{
		{File: "a.md", Line: 6, Path: "a/example_test.go", Function: "ExampleA", Code: "a()\n\tb()\n"},
		{File: "a.md", Line: 11, Path: "main.go"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Snippets (-want +got):\n%s", diff)
	}
}

func TestSnippetsNeedsAnOrigin(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"no marker", lines("text", "```go", "a()", "```"), "a.md:2: Go block without"},
		{"marker too far away", lines("<!-- from: a.go A -->", "", "```go", "```"), "a.md:1: origin of a snippet without a Go block"},
		{"marker before another language", lines("<!-- from: a.go A -->", "```yaml", "```"), "a.md:1: origin of a snippet without a Go block"},
		{"marker that says too much", lines("<!-- from: a.go A B -->", "```go", "```"), "a.md:1: want <!-- from:"},
		{"marker of another file", lines("<!-- from: a.txt -->", "```go", "```"), "a.md:1: want <!-- from:"},
		{"open block", lines("<!-- from: a.go A -->", "```go", "a()"), "a.md:2: block is never closed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := readme.Snippets("a.md", tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Snippets = %v, %v; want an error with %q", got, err, tc.want)
			}
		})
	}
}

const source = `package a

type T struct{}

func (T) ExampleA() { method() }

// ExampleA shows a.
func ExampleA() {
	if a() {
		b() // why
	}

	c()
	// Output:
	// x
	// y
}

func plain() { one() }
`

func TestSourceIsBodyWithoutItsFrame(t *testing.T) {
	fsys := fstest.MapFS{"a/a_test.go": {Data: []byte(source)}}
	for _, tc := range []struct{ function, want string }{
		{"ExampleA", "if a() {\n\tb() // why\n}\n\nc()\n"},
		{"plain", "one()\n"},
		{"", source},
	} {
		got, err := readme.Source(fsys, "a/a_test.go", tc.function)
		if err != nil || got != tc.want {
			t.Errorf("Source(%q) = %q, %v; want %q", tc.function, got, err, tc.want)
		}
	}
}

func TestCheckNoticesEveryDifference(t *testing.T) {
	fsys := fstest.MapFS{"a.go": {Data: []byte(source)}}
	for _, tc := range []struct {
		name    string
		snippet readme.Snippet
		want    string // part of the only text; "" for none
	}{
		{"equal", readme.Snippet{Path: "a.go", Function: "plain", Code: "one()\n"}, ""},
		{"another call", readme.Snippet{File: "a.md", Line: 7, Path: "a.go", Function: "plain", Code: "two()\n"}, "a.md:7 from a.go plain: the block differs"},
		{"a line more", readme.Snippet{Path: "a.go", Function: "plain", Code: "one()\n\n"}, "the block differs"},
		{"no such function", readme.Snippet{Path: "a.go", Function: "gone"}, "a.go has no function gone"},
		{"no such file", readme.Snippet{Path: "b.go", Function: "plain"}, "b.go"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := readme.Check(fsys, []readme.Snippet{tc.snippet})
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("Check found %q, want nothing", got)
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)):
				t.Errorf("Check found %q, want one text with %q", got, tc.want)
			}
		})
	}
}

func TestUpdateWritesTheOrigins(t *testing.T) {
	fsys := fstest.MapFS{"a.go": {Data: []byte(source)}}
	page := func(code ...string) string {
		return lines("# Title", "<!-- from: a.go ExampleA -->", "```go") + lines(code...) +
			lines("```", "text", "<!-- from: a.go plain -->", "```go", "one()", "```")
	}
	want := page("if a() {", "\tb() // why", "}", "", "c()")
	for _, old := range []string{page("old()"), page("old()", "", "more()"), want} {
		got, err := readme.Update(fsys, "a.md", old)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Update (-want +got):\n%s", diff)
		}
	}
	if _, err := readme.Update(fsys, "a.md", lines("<!-- from: a.go gone -->", "```go", "```")); err == nil {
		t.Error("Update accepts an origin that is not there")
	}
}

func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }
