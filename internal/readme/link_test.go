package readme_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/internal/readme"
)

func TestLinksFindsWhatLeadsNowhere(t *testing.T) {
	fsys := fstest.MapFS{
		"docs/b.md": {Data: []byte("# Two words: `Code` and more\n```sh\n# no heading\n```\n")},
		"a.md": {Data: []byte(lines(
			"[site](https://example.com/gone) [page](docs/b.md) [self](#top) ",
			"# Top",
			"[h](docs/b.md#two-words-code-and-more)",
			"```text",
			"[in code](gone.md)",
			"```",
			"[file](docs/c.md)",
			"[h](docs/b.md#no-heading) [s](#bottom)",
		))},
	}
	got, err := readme.Links(fsys, "a.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a.md:7: the link docs/c.md leads nowhere: open docs/c.md: file does not exist",
		"a.md:8: the link docs/b.md#no-heading: docs/b.md has no such heading",
		"a.md:8: the link #bottom: a.md has no such heading",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Links (-want +got):\n%s", diff)
	}
}
