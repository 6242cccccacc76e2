package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"resilience4cata.dev/go/policy"
	"resilience4cata.dev/go/registry/config"
)

// All mistakes of a file come out at once, each with its place and its way out.
func ExampleParse() {
	_, err := config.Parse("resilience.yaml", []byte(`instances:
  reports:
    tiemout: {value: 2s}
    retry: {maxAttempts: 3, delay: 100}
`))
	for _, e := range policy.ConfigErrors(err) {
		fmt.Println(e)
	}
	// Output:
	// resilience.yaml:3:5: instances."reports": unknown policy "tiemout" (did you mean "timeout"?) [R4C-REG-002]
	// resilience.yaml:4:36: instances."reports".retry.delay: 100 has no unit (did you mean 100ms or 100s?) [R4C-ATR-001]
}

// A service reads its file, and what its operators override.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "resilience.yaml")
	if err := os.WriteFile(path, []byte("instances: {reports: {timeout: {value: 2s}}}\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	cfg, err := config.Load(path)
	if err == nil {
		cfg, err = cfg.WithEnv(os.Environ())
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Instances())
	// Output:
	// [reports]
}

// The environment sets values by their paths.
func ExampleConfig_WithEnv() {
	cfg, _ := config.Parse("resilience.yaml", []byte("instances: {reports: {timeout: {value: 2s}}}\n"))
	cfg, err := cfg.WithEnv([]string{`RESILIENCE4CATA_SET=instances."reports".timeout.value=5s; instances."reports".retry.maxAttempts=2`})
	if err != nil {
		fmt.Println(err)
		return
	}
	timeout, _ := config.Timeout(cfg, "reports", config.Code[timeoutConfig]{})
	for _, s := range timeout.Settings {
		fmt.Println(s.Path, "=", s.Value, "from", s.Origin)
	}
	// Output:
	// instances."reports".timeout.value = 5s from env
	// instances."reports".timeout.enabled = true from default
}

// Editors complete and check a file by the schema.
func ExampleSchema() {
	var schema struct {
		Title string `json:"title"`
	}
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schema.Title)
	// Output:
	// resilience4cata configuration
}

func ExampleNearest() {
	fmt.Println(config.Nearest("tiemout", []string{"retry", "timeout"}))
	// Output:
	// timeout
}

// Each value says where it came from.
func ExampleTimeout() {
	cfg, _ := config.Parse("resilience.yaml", []byte("configs: {default: {timeout: {value: 1s}}}\n"))
	e, err := config.Timeout(cfg, "reports", config.Code[timeoutConfig]{})
	fmt.Println(e.Config.Value, e.Settings[0].Origin, err)
	// Output:
	// 1s resilience.yaml:1 <nil>
}
