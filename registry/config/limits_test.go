package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry/config"
)

// bomb is a file of n anchors, each of which refers ten times to the one before.
func bomb(n int, head, begin, item, end string) string {
	var b strings.Builder
	b.WriteString(head)
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "x-%d: &a%d %s", i, i, begin)
		for j := range 10 {
			fmt.Fprintf(&b, item, j, i-1)
		}
		b.WriteString(end + "\n")
	}
	return b.String()
}

// hostile are texts that must be refused, each with one mistake that says why.
func hostile() map[string][3]string { // text, code, part of what is told
	many := func(n int, one string) string { return strings.Repeat(one, n) }
	return map[string][3]string{
		"ten megabytes":         {"# " + many(10<<20, "x"), "R4C-REG-006", "larger than 2 MiB"},
		"many values":           {"x-a: [" + many(600_000, "a,") + "]", "R4C-REG-006", "more than 524288 values"},
		"deep lists":            {many(100_000, "["), "R4C-REG-006", "deeper than 32"},
		"deep maps":             {many(100_000, "{a: "), "R4C-REG-006", "deeper than 32"},
		"deep blocks":           {many(1000, "- "), "R4C-REG-006", "deeper than 32"},
		"a list bomb":           {bomb(9, "x-0: &a0 [x]\n", "[", "*a%[2]d,", "]") + "instances: *a9\n", "R4C-ATR-005", "a list where a section is needed"},
		"a map bomb":            {bomb(9, "x-0: &a0 {x: 1}\n", "{", "k%d: *a%d,", "}") + "instances: *a9\n", "R4C-REG-002", "unknown policy"},
		"a bomb of merges":      {bomb(9, "x-0: &a0 {x: 1}\n", "{<<: [", "{k%d: 1}, *a%[2]d,", "]}") + "instances: *a9\n", "R4C-ATR-005", "where a section is needed"},
		"an anchor in itself":   {"instances: &a {b: *a}", "R4C-REG-006", `the anchor "a" contains itself`},
		"a merge of itself":     {"x-a: &a {<<: *a}\ninstances: *a", "R4C-REG-006", "contains itself"},
		"a list of itself":      {"x-a: &a [*a]\ninstances: {b: {<<: *a}}", "R4C-ATR-005", "a list of lists"},
		"a chain of anchors":    {"x-0: &a0 {timeout: {value: 1s}}\n" + chain(200) + "instances: *a200\n", "R4C-REG-006", "deeper than 32"},
		"a NUL byte":            {"instances:\n  a\x00: {}", "R4C-REG-001", "control character 0x00"},
		"invalid UTF-8":         {"instances:\n  a\xff: {}", "R4C-REG-001", "byte 0xff is not UTF-8"},
		"UTF-16":                {"\xff\xfei\x00", "R4C-REG-001", "UTF-16"},
		"an open quote":         {`instances: "` + many(1<<17, "x"), "R4C-REG-001", ""},
		"a second document":     {"{}\n---\n{}", "R4C-REG-001", "second document"},
		"a tab as indentation":  {"instances:\n\ta: {}", "R4C-REG-001", "cannot start any token"},
		"one long plain scalar": {many(1<<16, "a "), "R4C-ATR-005", "where a section is needed"},
	}
}

func chain(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "x-%d: &a%d {k: *a%d}\n", i, i, i-1)
	}
	return b.String()
}

// What is allocated stands for the time, which is the machine's: a bomb that went
// off would need gigabytes, and one that spins comes to the end of go test's
// patience.
func TestHostileTextIsRefusedInBoundedTime(t *testing.T) {
	const most = 32 << 20
	for name, h := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := config.Parse("f", []byte(h[0]))
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > most {
			t.Errorf("%s: %d MiB allocated", name, n>>20)
		}
		errs := policy.ConfigErrors(err)
		if len(errs) == 0 || errs[0].Code != h[1] || !strings.Contains(errs[0].Got, h[2]) {
			t.Errorf("%s: %.300v, want %s: %s", name, err, h[1], h[2])
		}
		if err != nil && len(err.Error()) > 1<<20 {
			t.Errorf("%s: the text has %d bytes", name, len(err.Error()))
		}
	}
}

// What stands under an anchor is read again for each alias, and told once.
func TestManyAliasesOfManyMistakesEnd(t *testing.T) {
	var b strings.Builder
	b.WriteString("x-a: &a {")
	for i := range 2_000 {
		fmt.Fprintf(&b, "k%d: 1,", i)
	}
	b.WriteString("}\ninstances:\n")
	for i := range 2_000 {
		fmt.Fprintf(&b, "  i%d: *a\n", i)
	}
	_, err := config.Parse("f", []byte(b.String()))
	errs := policy.ConfigErrors(err)
	if len(errs) != 1001 || errs[1000].Code != "R4C-REG-006" || !strings.Contains(errs[1000].Got, "more than 1000 mistakes") {
		t.Errorf("%d mistakes, want 1000 and a last one that says so", len(errs))
	}
}

func TestALargeConfigurationLoads(t *testing.T) {
	var b strings.Builder
	b.WriteString("configs: {default: {timeout: {value: 1s}}}\ninstances:\n")
	for i := range 10_000 {
		fmt.Fprintf(&b, "  \"com.acme.Api%d#call(java.lang.String)\": {timeout: {value: 2s}, bulkhead: {maxConcurrent: 5}}\n", i)
	}
	c := parse(t, b.String())
	if n := len(c.Instances()); n != 10_000 {
		t.Errorf("%d instances, want 10000", n)
	}
	if near := c.Nearest("com.acme.Api123#call(java.lang.Strin)"); near != "com.acme.Api123#call(java.lang.String)" {
		t.Errorf("Nearest = %q", near)
	}
}

func TestLoadReadsNoMoreThanTheLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.yaml")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 34); err != nil { // sparse: takes no room on the disk
		t.Skip("no sparse files here: ", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(path); err == nil || !strings.Contains(err.Error(), "larger than 2 MiB") {
		t.Errorf("got %v", err)
	}
}
