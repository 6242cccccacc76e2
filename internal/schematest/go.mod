module resilience4cata.dev/go/internal/schematest

go 1.25

require (
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	go.yaml.in/yaml/v4 v4.0.0
	resilience4cata.dev/go v0.0.0
)

require (
	github.com/benbjohnson/clock v1.3.5 // indirect
	golang.org/x/text v0.14.0 // indirect
)

replace resilience4cata.dev/go => ../..
