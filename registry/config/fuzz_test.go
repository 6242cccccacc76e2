package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry/config"
)

// seeds are texts to begin with: right ones, wrong ones and strange ones.
func seeds(f *testing.F) {
	f.Helper()
	for _, pattern := range []string{"testdata/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, p := range paths {
			text, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	for _, text := range []string{
		documented, "", "{}", "---\n...\n", "a: &a [*a]", "x-a: &a {<<: *a}\ninstances: *a", "instances: {a: {timeout: {value: 1s}}}",
		`{"instances": {"\ud83d\ude00\/": {"retry": {"maxAttempts": "unlimited"}}}}`, "? [a]\n: b", "!!map {instances: {}}",
		"instances: {a: &a {retry: {}}, b: {<<: *a, <<: *a}}", "%YAML 1.2\n---\nconfigs: {d: {bulkhead: {queue: unlimited}}}",
		"instances:\n  a: {circuitBreaker: {timeWindow: 1s}, rateLimiter: {limit: 1, name: b}}\n  b: {rateLimiter: {limit: 2}}\n",
	} {
		f.Add([]byte(text))
	}
}

// The parser and the binder never panic, give a Config or an error and never
// both, and an error that has a code, a file and, for all but the limits of a
// whole file, a place in the text.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := config.Parse("f", text)
		if (c == nil) == (err == nil) {
			t.Fatalf("Config %v and error %v", c, err)
		}
		if err == nil {
			return
		}
		errs := policy.ConfigErrors(err)
		if len(errs) == 0 || len(errs) > 1001 || len(err.Error()) > 1<<20 {
			t.Fatalf("%d mistakes in %d bytes", len(errs), len(err.Error()))
		}
		// What YAML takes for the end of a line.
		lines := strings.Count(strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(string(text)), "\n") + 2
		last := 0
		for _, e := range errs {
			if e.Code == "" || e.File != "f" || e.Got == "" || e.Line > lines || e.Line < last && e.Line != 0 || e.Line > 0 && e.Col < 1 {
				t.Fatalf("a mistake without a sensible place: %+v", *e)
			}
			last = e.Line
		}
		if again := second(config.Parse("f", text)); again.Error() != err.Error() {
			t.Fatalf("another text the second time:\n%v\n%v", err, again)
		}
	})
}

func second(_ *config.Config, err error) error { return err }

// The environment is read as safely as a file is.
func FuzzWithEnv(f *testing.F) {
	for _, text := range []string{
		`instances."reports".timeout.value=5s; configs.slow.timeout.value=10s`, `a`, `instances.a.b`, `"`, `instances."a;".critical="tr`,
		`instances.a.retry.budget.ratio=1e3;;instances.a.retry.budget=`, `instances.a.timeout.value="5s";x`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := (*config.Config)(nil).WithEnv([]string{config.EnvVariable + "=" + text})
		if (c == nil) == (err == nil) {
			t.Fatalf("Config %v and error %v", c, err)
		}
		for _, e := range policy.ConfigErrors(err) {
			if e.Code == "" || e.File != config.EnvVariable || e.Got == "" {
				t.Fatalf("%+v", *e)
			}
		}
		if c != nil {
			roundTrip(t, c)
		}
	})
}

// What a configuration comes to, given back through the environment path by
// path, comes to the same (SN-02: values are shown as they can be given).
func FuzzSettingsRoundTrip(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := config.Parse("f", text); err == nil {
			roundTrip(t, c)
		}
	})
}

func roundTrip(t *testing.T, c *config.Config) {
	t.Helper()
	for _, id := range c.Instances() {
		roundTripOf(t, c, id, config.Retry)
		roundTripOf(t, c, id, config.CircuitBreaker)
		roundTripOf(t, c, id, config.RateLimit)
		roundTripOf(t, c, id, config.Timeout)
		roundTripOf(t, c, id, config.Bulkhead)
	}
}

func roundTripOf[C any](t *testing.T, c *config.Config, id string, ask func(*config.Config, string, config.Code[C]) (config.Effective[C], error)) {
	t.Helper()
	want, err := ask(c, id, config.Code[C]{})
	if err != nil || !want.Present {
		return
	}
	var env strings.Builder
	env.WriteString(config.EnvVariable + "=")
	for _, s := range want.Settings {
		env.WriteString(s.Path + "=" + s.Value + ";")
	}
	back, err := (*config.Config)(nil).WithEnv([]string{env.String()})
	if err != nil {
		// Values of an instance that is off are not judged where they come from a
		// lower level, and are when they are given as the instance's own.
		if !want.Enabled {
			return
		}
		t.Fatalf("%s: %v\n%s", id, err, env.String())
	}
	got, err := ask(back, id, config.Code[C]{})
	if err != nil {
		t.Fatalf("%s: %v\n%s", id, err, env.String())
	}
	if !reflect.DeepEqual(want.Config, got.Config) || want.Name != got.Name || want.Enabled != got.Enabled {
		t.Fatalf("%s: %+v came back as %+v\n%s", id, want, got, env.String())
	}
}
