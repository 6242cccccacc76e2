package readme_test

import (
	"flag"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"resilience4cata.dev/go/internal/readme"
)

const (
	root     = "../.."
	maxLines = 200
)

var update = flag.Bool("update", false, "write the snippets of the pages from their origins")

// long are the pages that are looked up and not read.
var long = []string{"docs/configuration.md", "docs/errors.md"}

// pages are README.md and the pages of docs, relative to the root.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := fs.Glob(os.DirFS(root), "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 2 {
		t.Fatalf("pages in docs: %q", found)
	}
	return append([]string{"README.md", "CONTRIBUTING.md"}, found...)
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(root + "/" + page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSnippetsComeFromTestedCode(t *testing.T) {
	for _, page := range pages(t) {
		if *update {
			text, err := readme.Update(os.DirFS(root), page, read(t, page))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(root+"/"+page, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		snippets, err := readme.Snippets(page, read(t, page))
		if err != nil {
			t.Error(err)
		}
		if page == "README.md" && len(snippets) == 0 {
			t.Error("README.md shows no Go code")
		}
		for _, text := range readme.Check(os.DirFS(root), snippets) {
			t.Error(text)
		}
	}
}

func TestPagesAreShort(t *testing.T) {
	for _, page := range pages(t) {
		if n := strings.Count(read(t, page), "\n"); n >= maxLines && !slices.Contains(long, page) {
			t.Errorf("%s has %d lines, want fewer than %d", page, n, maxLines)
		}
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		wrong, err := readme.Links(os.DirFS(root), page)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range wrong {
			t.Error(text)
		}
	}
}

// .ci/run finds the commands in the same way: the first line that begins with them, with or without a prompt.
func TestREADMEHasItsCommands(t *testing.T) {
	lines := strings.Split(read(t, "README.md"), "\n")
	for _, want := range []string{"go test ./...", "go run ./examples/quickstart"} {
		words := strings.Join(strings.Fields(want)[:2], " ") + " "
		i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimPrefix(l, "$ "), words) })
		if i < 0 {
			t.Errorf("README.md has no line that begins with %q", want)
			continue
		}
		if got, _, _ := strings.Cut(strings.TrimPrefix(lines[i], "$ "), "#"); strings.TrimSpace(got) != want {
			t.Errorf("README.md:%d: first %q command is %q, want %q", i+1, words, got, want)
		}
	}
}
