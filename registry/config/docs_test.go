package config_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry/config"
)

const (
	root           = "../.."
	cataloguePath  = root + "/docs/errors.md"
	referencePath  = root + "/docs/configuration.md"
	regenerateHint = "go test ./registry/config -run TestDocs -update"
)

var codePattern = regexp.MustCompile(`R4C-[A-Z]{3}-[0-9]{3}`)

// Rule G-4: codes are stable and listed. Every code that the code of this
// repository makes has an entry.
func TestDocsErrorsCataloguesEveryCodeInUse(t *testing.T) {
	text, err := os.ReadFile(cataloguePath)
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (`+codePattern.String()+`)$`).FindAllStringSubmatch(string(text), -1) {
		if entries[m[1]] {
			t.Errorf("%s has two entries", m[1])
		}
		entries[m[1]] = true
	}
	used := map[string]string{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, code := range codePattern.FindAllString(string(source), -1) {
			used[code] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for code, path := range used {
		if !entries[code] {
			t.Errorf("%s, in %s, is not in docs/errors.md", code, path)
		}
	}
	for code := range entries {
		if used[code] == "" {
			t.Errorf("%s is in docs/errors.md and nothing makes it", code)
		}
	}
}

// Of the examples of an entry the first has the mistake, the second has none.
func TestDocsErrorsExamplesAreTrue(t *testing.T) {
	text, err := os.ReadFile(cataloguePath)
	if err != nil {
		t.Fatal(err)
	}
	entries := strings.Split(string(text), "\n## ")[1:]
	if len(entries) < 15 {
		t.Fatalf("%d entries", len(entries))
	}
	for _, entry := range entries {
		code, _, _ := strings.Cut(entry, "\n")
		for _, part := range []string{"**Cause.**", "**Way out.**"} {
			if !strings.Contains(entry, part) {
				t.Errorf("%s has no %s", code, part)
			}
		}
		examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(entry, -1)
		if len(examples) == 0 {
			continue // about what is no file, such as code
		}
		if len(examples) != 2 {
			t.Errorf("%s has %d examples in YAML, want 2", code, len(examples))
			continue
		}
		_, err := config.Parse("f", []byte(examples[0][1]))
		if !slices.ContainsFunc(policy.ConfigErrors(err), func(e *policy.ConfigError) bool { return e.Code == code }) {
			t.Errorf("%s: the example gives %v", code, err)
		}
		if _, err := config.Parse("f", []byte(examples[1][1])); err != nil {
			t.Errorf("%s: the way out gives %v", code, err)
		}
	}
}

func TestDocsConfigurationIsCurrent(t *testing.T) {
	want := reference()
	if *update {
		if err := os.WriteFile(referencePath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("docs/configuration.md is not what the table says; run: %s", regenerateHint)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(got), -1)
	for _, e := range example {
		if _, err := config.Parse("docs/configuration.md", []byte(e[1])); err != nil {
			t.Errorf("an example of docs/configuration.md: %v", err)
		}
	}
	if len(example) == 0 {
		t.Error("docs/configuration.md has no example")
	}
}

// reference writes the reference page from the table.
func reference() []byte {
	var b bytes.Buffer
	b.WriteString("<!-- Generated from the table in registry/config by: " + regenerateHint + " -->\n\n")
	b.WriteString(referenceHead)
	section := ""
	for _, a := range config.Table() {
		if a.Section != section {
			section = a.Section
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", section, config.SectionDoc(section))
		}
		value := a.Kind
		if a.Words != nil {
			value = "`" + strings.Join(a.Words, "`, `") + "`"
		}
		if a.Unit != "" {
			value += " of " + a.Unit
		}
		if a.Range != "" {
			value += ", " + a.Range
		}
		if a.Endless {
			value += ", or `unlimited`"
		}
		initial := "–"
		if a.Default != "" {
			initial = "`" + a.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Key, value, initial, a.Doc)
	}
	keys := config.InstanceKeys()
	fmt.Fprintf(&b, "\n### Keys of an instance\n\n| key | value | default | meaning |\n|---|---|---|---|\n"+
		"| `config` | id | – | %s |\n| `critical` | boolean | `false` | %s |\n", keys[0], keys[1])
	b.WriteString(referenceTail)
	return b.Bytes()
}

const referenceHead = `# Configuration

` + "```yaml\n" + documented + "```" + `

A file is YAML or JSON and has two sections. Settings to build on stand under ` + "`configs`" + `, by name; those of ` + "`default`" + ` count for
every instance. Settings of one instance stand under ` + "`instances`" + `, by its id, which is any printable text. Top-level keys that
begin with ` + "`x-`" + ` are free, for anchors and notes; anchors and merge keys (` + "`<<`" + `) work.

Reading is strict: an unknown or duplicate key, a null and a duration without unit are errors, and all mistakes of a file come
out at once; only what stands under the second of two equal keys is not looked at. A value that must be set may come from code,
so ` + "`Build`" + ` is where a missing one is found. [errors.md](errors.md) lists the mistakes.

## Levels

From low to high: the built-in defaults, ` + "`configs.default`" + `, the config that code names, code, the config that the instance
names (` + "`config: slow`" + `), the instance. Each value of a higher level takes the place of the lower one's; an explicit zero is a
value. A policy is part of a pipeline because code says so, or, with ` + "`Configured`" + `, because some level names it; ` + "`retry: {}`" + `
names it with the settings of the levels below. Only the result is validated.

` + "`reports: {}`" + ` names no policy. If no level below does either, ` + "`Configured`" + ` builds a pipeline without layers, which only
asks whether the registry is closed and the caller's context has ended: nothing is protected, and no call counted. ` + "`Check`" + ` says so.

A layer with a ` + "`name`" + ` uses the shared instance of that id, whose settings stand under ` + "`instances.<name>`" + ` if there is such a
section. How long a layer waits (` + "`maxWait`" + `), ` + "`freeOnTimeout`" + ` and all of a retry but its budget stay the layer's own.
The ` + "`queue`" + ` of a bulkhead is the instance's. Where it is given, a layer without a ` + "`maxWait`" + ` waits as long as its context allows;
where nobody gives it, such a layer does not wait, and the others have a queue without a bound. A queue that a later layer gives
holds for the layers that are built from then on. 0 of either: no waiting.

## Values

A duration is a number and a unit, as Go writes it: ` + "`250ms`, `2s`, `1m30s`" + `; only ` + "`0`" + ` has no unit. Numbers are decimal, without
quotes. Booleans are ` + "`true` and `false`" + `.

## Keys
`

const referenceTail = `
## Environment

` + "`Config.WithEnv`" + ` reads one variable, with a value for each path:

    RESILIENCE4CATA_SET='instances."reports".timeout.value=5s; configs.slow.timeout.value=10s'

A value takes the place of what the file says at that path, or is added there, and keeps the rank of the path. An id that is no
plain word stands between double quotes. The paths are those that errors and ` + "`Explain`" + ` show. A mistake names the variable where
others name a file: ` + "`RESILIENCE4CATA_SET: instances.\"reports\".timeout.value: 30 has no unit (did you mean 30s?)`" + `.

## Schema

` + "`config.Schema()`" + ` returns the JSON Schema of the file. With this first line an editor completes and checks the keys:

    # yaml-language-server: $schema=resilience.schema.json
`
