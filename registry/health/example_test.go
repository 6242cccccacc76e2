package health_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"resilience4cata.dev/go/pipeline"
	"resilience4cata.dev/go/registry"
	"resilience4cata.dev/go/registry/health"
)

func ExampleHandler() {
	reg, err := registry.New()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pipeline.New[int](reg, "reports").CircuitBreaker().Build(); err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/healthz", health.Handler(reg))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz?id=report", http.NoBody))
	fmt.Println(w.Code, w.Body)
	w = httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz?id=reports", http.NoBody))
	fmt.Println(w.Code, w.Body.String()[:30])
	// Output:
	// 404 {"error":"unknown id \"report\"","nearest":"reports"}
	//
	// 200 {"status":"pass","reasons":[],
}
