// Reload shows a limit that changes under load. Callers keep a bulkhead full;
// meanwhile the configuration file is rewritten, read and handed to
// Registry.Reload: the limit rises, a file with a mistake changes nothing, the
// limit falls. No call fails for it, and none is repeated. Registry.Explain tells
// before and after which line of which file each value comes from.
//
// Run it with
//
//	go run ./examples/reload
//
// It ends within five seconds. For a service that reloads by a signal, see
// examples/service.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry"
	"resilience4cata.dev/go/registry/config"
)

// callers is how many goroutines call at the same time: more than any limit.
const callers = 12

func main() {
	dir, err := os.MkdirTemp("", "reload")
	if err != nil {
		log.Fatal(err)
	}
	err = errors.Join(run(context.Background(), os.Stdout, dir), os.RemoveAll(dir))
	if err != nil {
		log.Fatal(err)
	}
}

// file is the configuration with a certain limit.
func file(limit string) string {
	return `instances:
  reports:
    timeout: {value: 1s}
    bulkhead:
      maxConcurrent: ` + limit + `
      queue: unlimited
`
}

// run is the whole program, for its test as well. It writes its configuration
// file into dir.
func run(ctx context.Context, out io.Writer, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }

	path := filepath.Join(dir, "resilience.yaml")
	if err := os.WriteFile(path, []byte(file("2")), 0o600); err != nil {
		return err
	}
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	reg, err := registry.New(registry.WithConfig(cfg))
	if err != nil {
		return err
	}
	l, err := startLoad(ctx, reg)
	if err != nil {
		return err
	}
	defer l.stop()

	for _, step := range []struct {
		what, limit string
		most        int // calls at once afterwards
	}{
		{"As it started", "2", 2},
		{"The limit rises", "6", 6},
		{"A file with a mistake", "many", 6},
		{"The limit falls", "3", 3},
	} {
		say("%s: maxConcurrent: %s", step.what, step.limit)
		if err := rewrite(reg, path, file(step.limit)); err != nil {
			say("   refused, and nothing has changed:")
			for _, mistake := range policy.ConfigErrors(err) {
				say("   %s", strings.ReplaceAll(mistake.Error(), dir+string(filepath.Separator), ""))
			}
		}
		for _, s := range reg.Explain("reports") {
			if s.Path == `instances."reports".bulkhead.maxConcurrent` {
				say("   explained: %s = %s, from %s", s.Path, s.Value, strings.TrimPrefix(s.Origin, dir+string(filepath.Separator)))
			}
		}
		peak, err := l.peak(ctx, step.most)
		if err != nil {
			return err
		}
		say("   calls at once: %d", peak)
	}

	l.stop()
	calls := reg.Snapshot().Pipelines[0].Calls
	say("Of %d callers, none was refused or failed: rejected %d, failed %d, timed out %d, in flight %d",
		callers, calls.Rejected, calls.Failed, calls.TimedOut, calls.InFlight)
	return l.err()
}

// rewrite puts text in place of the file, as an operator's tool does it, and
// makes the registry take it over. The file is replaced in one step: whoever reads
// it sees the old or the new one.
func rewrite(reg *registry.Registry, path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	return reg.Reload(cfg)
}
