package arch_test

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"resilience4cata.dev/go/internal/arch"
)

func TestRepository(t *testing.T) {
	tree, err := arch.Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	// A walk that finds nothing would pass every check.
	dirs := dirsOf(tree)
	for _, want := range []string{"clock", "policy", "internal/arch"} {
		if !slices.Contains(dirs, want) {
			t.Errorf("Load found packages %q, without %q", dirs, want)
		}
	}
	for _, c := range arch.Checks {
		t.Run(c.Name, func(t *testing.T) {
			for _, text := range c.Find(tree) {
				t.Error(text)
			}
		})
	}
}

func TestImportsFindsWrongArrow(t *testing.T) {
	for _, tc := range []struct {
		name, file, imports string
		want                string // part of the only finding; "" for none
	}{
		{"policy to pipeline", "policy/retry/retry.go", "resilience4cata.dev/go/pipeline", "policy/retry must not import pipeline"},
		{"policy to registry", "policy/retry/retry.go", "resilience4cata.dev/go/registry", "policy/retry must not import registry"},
		{"policy to its neighbor", "policy/retry/retry.go", "resilience4cata.dev/go/policy/timeout", "policy/retry must not import policy/timeout"},
		{"policy to the test suite", "policy/retry/retry.go", "resilience4cata.dev/go/internal/conform", "policy/retry must not import internal/conform"},
		{"policy to internal", "policy/retry/retry.go", "resilience4cata.dev/go/internal/scope", ""},
		{"policy to what knows the policies", "policy/fallback/option.go", "resilience4cata.dev/go/internal/stack", "policy/fallback must not import internal/stack"},
		{"vocabulary to clock", "policy/event.go", "resilience4cata.dev/go/clock", "policy must not import clock"},
		{"call context to clock", "internal/callctx/context.go", "resilience4cata.dev/go/clock", "internal/callctx must not import clock"},
		{"wheel to stripe", "internal/wheel/wheel.go", "resilience4cata.dev/go/internal/stripe", ""},
		{"wheel to scope", "internal/wheel/wheel.go", "resilience4cata.dev/go/internal/scope", "internal/wheel must not import internal/scope"},
		{"config to registry", "registry/config/config.go", "resilience4cata.dev/go/registry", "registry/config must not import registry"},
		{"config to its parser", "registry/config/config.go", "go.yaml.in/yaml/v4", ""},
		{"registry to the parser", "registry/registry.go", "go.yaml.in/yaml/v4", "registry must not import go.yaml.in/yaml/v4"},
		{"health to pipeline", "registry/health/health.go", "resilience4cata.dev/go/pipeline", "registry/health must not import pipeline"},
		{"pipeline to registry", "pipeline/pipeline.go", "resilience4cata.dev/go/registry", ""},
		{"pipeline to the adapted clock", "pipeline/pipeline.go", "github.com/benbjohnson/clock", "pipeline must not import github.com/benbjohnson/clock"},
		{"pipeline to a leak checker", "pipeline/pipeline.go", "go.uber.org/goleak", "pipeline must not import go.uber.org/goleak"},
		{"tests are free", "policy/retry/retry_test.go", "resilience4cata.dev/go/pipeline", ""},
		{"example to internal", "examples/quickstart/main.go", "resilience4cata.dev/go/internal/scope", "examples/quickstart must not import internal/scope"},
		{"package without a row", "gadget/gadget.go", "fmt", "gadget: package has no row"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			src := "package " + path.Base(path.Dir(tc.file)) + "\n\nimport _ \"" + tc.imports + "\"\n"
			wantFinding(t, "imports follow the table", map[string]string{tc.file: src}, tc.want)
		})
	}
}

func TestChecksFindWhatTheyAreFor(t *testing.T) {
	const (
		modules = "go.mod requires only the agreed modules"
		alike   = "policy folders are alike"
		comment = "packages have a package comment"
		leaks   = "packages with tests watch for leaks"
		sleeps  = "tests sleep in bubbles only"
		long    = "no file is too long"

		leakMain = "package a_test\n\nimport \"go.uber.org/goleak\"\n\nfunc TestMain(m *testing.M) { goleak.VerifyTestMain(m%s) }\n"
		sleeping = "package a_test\n\nimport (\n\tzeit \"time\"\n\t\"testing/synctest\"\n)\n\n"
	)
	for _, tc := range []struct {
		name, check string
		files       map[string]string
		want        string // part of the only finding; "" for none
	}{
		{"agreed module", modules, map[string]string{"go.mod": "require (\n\tgithub.com/google/go-cmp v0.7.0\n)\n"}, ""},
		{"module in a block", modules, map[string]string{"go.mod": "require (\n\texample.com/x v1.0.0 // indirect\n)\n"}, "go.mod:2: module example.com/x"},
		{"module on a line", modules, map[string]string{"go.mod": "go 1.25\nrequire example.com/x v1.0.0\n"}, "go.mod:2: module example.com/x"},
		{"replaced module", modules, map[string]string{"go.mod": "replace example.com/x => ../x\n"}, "go.mod:1: replace"},

		{"error in a file of its own name", alike, policyFolder("error.go", "type Error struct{}"), ""},
		{"error merged", alike, policyFolder("config.go", "type Error struct{}"), ""},
		{"error in another file", alike, policyFolder("errors.go", "type Error struct{}"), "type Error belongs in policy/retry/error.go"},
		{"event in another file", alike, policyFolder("happenings.go", "type Retrying struct{ policy.Meta }"), "type Retrying belongs in policy/retry/event.go"},
		{"config beside its file", alike, map[string]string{
			"policy/retry/doc.go": "package retry", "policy/retry/config.go": "package retry",
			"policy/retry/retry.go": "package retry\n\ntype Config struct{}",
		}, "type Config belongs in policy/retry/config.go"},
		{"no doc.go", alike, map[string]string{"policy/retry/retry.go": "package retry"}, "policy/retry: policy folder has no doc.go"},
		{"policy in another file", alike, map[string]string{
			"policy/retry/doc.go": "package retry", "policy/retry/config.go": "package retry\n\ntype Policy struct{}",
		}, "type Policy belongs in policy/retry/retry.go"},

		{"comment", comment, map[string]string{"a/a.go": "// Package a is.\npackage a"}, ""},
		{"no comment", comment, map[string]string{"a/a.go": "package a"}, "a: package has no package comment"},
		{"comment of the tests only", comment, map[string]string{"a/a.go": "package a", "a/a_test.go": "// Package a is.\npackage a_test"}, "a: package has no package comment"},
		{"two comments", comment, map[string]string{"a/a.go": "// Package a is.\npackage a", "a/b.go": "// Package a is.\npackage a"}, "a: 2 files"},
		{"comment of another package", comment, map[string]string{"a/a.go": "// Package b is.\npackage a"}, "must begin with"},

		{"leak check", leaks, map[string]string{"a/leak_test.go": strings.ReplaceAll(leakMain, "%s", "")}, ""},
		{"leak check with options", leaks, map[string]string{"a/leak_test.go": strings.ReplaceAll(leakMain, "%s", ", goleak.IgnoreCurrent()")}, "a/leak_test.go:5: goleak.VerifyTestMain must be called without options"},
		{"no leak check", leaks, map[string]string{"a/a_test.go": "package a_test"}, "a: package has tests but no leak_test.go"},
		{"empty leak check", leaks, map[string]string{"a/leak_test.go": "package a_test"}, "a/leak_test.go: TestMain must call"},

		{"sleep", sleeps, map[string]string{"a/a_test.go": sleeping + "func f() { zeit.Sleep(1) }"}, "a/a_test.go:8: time.Sleep"},
		{"sleep as a value", sleeps, map[string]string{"a/a_test.go": sleeping + "var f = zeit.Sleep"}, "a/a_test.go:8: time.Sleep"},
		{"sleep in a bubble", sleeps, map[string]string{"a/a_test.go": sleeping + "func f() { synctest.Test(t, func(t *testing.T) { zeit.Sleep(1) }) }"}, ""},
		{"sleep beside a bubble", sleeps, map[string]string{"a/a_test.go": sleeping + "func f() { synctest.Test(g(zeit.Sleep), func(t *testing.T) {}) }"}, "a/a_test.go:8: time.Sleep"},
		{"sleep in a file of bubbles", sleeps, map[string]string{"a/bubble_test.go": sleeping + "func f() { zeit.Sleep(1) }"}, ""},

		{"long enough", long, map[string]string{"a/a.go": "package a\n" + strings.Repeat("\n", arch.MaxLines-1)}, ""},
		{"too long", long, map[string]string{"a/a.go": "package a\n" + strings.Repeat("\n", arch.MaxLines)}, "a/a.go: 501 lines"},
		{"too long in another module", long, map[string]string{"b/go.mod": "module b", "b/c/c.go": "package c\n" + strings.Repeat("\n", arch.MaxLines)}, "b/c/c.go: 501 lines"},
	} {
		t.Run(tc.check+"/"+tc.name, func(t *testing.T) { wantFinding(t, tc.check, tc.files, tc.want) })
	}
}

func TestLoadLeavesOutWhatTheGoCommandLeavesOut(t *testing.T) {
	tree := load(t, map[string]string{
		"a/a.go":            "package a",
		"a/testdata/bad.go": "not Go",
		".hidden/x.go":      "not Go",
		"_old/x.go":         "not Go",
		"other/go.mod":      "module other",
		"other/deep/x.go":   "package deep",
		"otherwise/x.go":    "package otherwise",
	})
	if diff := cmp.Diff([]string{"a", "otherwise"}, dirsOf(tree)); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	if len(tree.Nested) != 1 || tree.Nested[0].Path != "other/deep/x.go" {
		t.Errorf("Nested = %v, want the one file of module other", tree.Nested)
	}
}

// policyFolder is a retry folder in good order plus one file.
func policyFolder(name, decl string) map[string]string {
	return map[string]string{
		"policy/retry/doc.go":   "package retry",
		"policy/retry/retry.go": "package retry\n\ntype Policy struct{}",
		"policy/retry/" + name:  "package retry\n\n" + decl,
	}
}

// wantFinding runs one check on a synthetic tree. The empty want stands for no finding.
func wantFinding(t *testing.T, check string, files map[string]string, want string) {
	t.Helper()
	i := slices.IndexFunc(arch.Checks, func(c arch.Check) bool { return c.Name == check })
	if i < 0 {
		t.Fatalf("no check %q", check)
	}
	got := arch.Checks[i].Find(load(t, files))
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("found %q, want nothing", got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0], want)):
		t.Errorf("found %q, want one text with %q", got, want)
	}
}

func load(t *testing.T, files map[string]string) *arch.Tree {
	t.Helper()
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module " + arch.ModulePath + "\n")}}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := arch.Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func dirsOf(tree *arch.Tree) (dirs []string) {
	for _, p := range tree.Packages {
		dirs = append(dirs, p.Dir)
	}
	return dirs
}
