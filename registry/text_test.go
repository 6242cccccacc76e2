package registry_test

import (
	"fmt"
	"testing"

	"resilience4cata.dev/go/registry"
)

func TestFindingsAndSettingsAreLinesForPeople(t *testing.T) { // G-8, G-9
	f := registry.Finding{Code: "R4C-CHK-002", ID: "reports", Severity: "warning", Text: "bulkhead wait 5s can never be served"}
	if got, want := fmt.Sprint(f), "warning: reports: bulkhead wait 5s can never be served [R4C-CHK-002]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s := registry.Setting{Path: `instances."reports".timeout.value`, Value: "2s", Origin: "resilience.yaml:8"}
	if got, want := fmt.Sprint(s), `instances."reports".timeout.value = 2s (resilience.yaml:8)`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
