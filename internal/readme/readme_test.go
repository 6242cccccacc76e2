package readme_test

import (
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

func readREADME(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSnippetsComeFromTestedCode(t *testing.T) {
	snippets, err := readme.Snippets(readREADME(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(snippets) == 0 {
		t.Fatal("README.md shows no Go code")
	}
	for _, text := range readme.Check(os.DirFS(root), snippets) {
		t.Error(text)
	}
}

func TestREADMEIsShort(t *testing.T) {
	if n := strings.Count(readREADME(t), "\n"); n >= maxLines {
		t.Errorf("README.md has %d lines, want fewer than %d; move details to docs", n, maxLines)
	}
}

// .ci/run finds the commands in the same way: the first line that begins with them, with or without a prompt.
func TestREADMEHasItsCommands(t *testing.T) {
	lines := strings.Split(readREADME(t), "\n")
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
