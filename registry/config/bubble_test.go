package config_test

import (
	"testing"
	"testing/synctest"

	"resilience4cata.dev/go/registry/config"
)

// every entry point works inside a bubble, and leaves nothing running.
func TestEntryPointsWorkInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := config.Load("testdata/right.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if c, err = c.WithEnv([]string{config.EnvVariable + "=instances.mail.timeout.value=3s"}); err != nil {
			t.Fatal(err)
		}
		for _, id := range c.Instances() {
			configured(t, c, id)
		}
		if len(config.Schema()) == 0 || c.Nearest("mial") != "mail" {
			t.Error("schema or nearest id")
		}
	})
}
