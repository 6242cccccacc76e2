package arch_test

import "testing"

func TestGuaranteesFindsTablesThatLie(t *testing.T) {
	const check = "tables of guarantees name tests that exist"
	comment := func(dir string, rows string) map[string]string {
		return map[string]string{
			dir + "/doc.go": "// Package x is. Do not use it.\n//\n// # Guarantees\n//\n//\twhat  proved by\n//\t" + rows + "\npackage x\n",
			dir + "/x_test.go": "package x_test\n\nfunc TestOne_A1_Holds(t *testing.T) {}\n\nfunc FuzzTwo(f *testing.F) {}\n\n" +
				"func (s suite) TestMethod(t *testing.T) {}\n",
			"internal/other/other_test.go": "package other_test\n\nfunc TestElsewhere(t *testing.T) {}\n",
		}
	}
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string // part of the only finding; "" for none
	}{
		{"tests that exist", comment("clock", "it holds  TestOne_A1_Holds, FuzzTwo"), ""},
		{"all that begin so", comment("clock", "it holds  TestOne_A1_…"), ""},
		{"a row on two lines", comment("clock", "it holds  TestOne_A1_Holds,\n//\t          TestGone"), "clock has no TestGone"},
		{"no test of the name", comment("clock", "it holds  TestOne_A1"), "clock has no TestOne_A1, which"},
		{"none begins so", comment("clock", "it holds  FuzzTwo, TestThree_…"), "clock has no TestThree_…"},
		{"a method", comment("clock", "it holds  FuzzTwo, TestMethod"), "clock has no TestMethod"},
		{"a test elsewhere", comment("clock", "it holds  FuzzTwo, TestElsewhere"), "clock has no TestElsewhere"},
		{"an internal package", comment("internal/x", "it holds  TestGone"), "internal/x has no TestGone"},
		{"a command", comment("clock", "it holds  FuzzTwo\n//\n//\tgo test -run 'TestField|FuzzTwo'"), ""},
		{"prose", map[string]string{"internal/x/doc.go": "// Package x is like TestGone.\npackage x\n"}, ""},
		{"a table without tests", comment("clock", "it holds  always"), "has no table under # Guarantees"},
		{"no table", map[string]string{"clock/doc.go": "// Package clock is. Do not use it.\npackage clock\n"}, "has no table under # Guarantees"},
		{"no word on when not to", map[string]string{
			"clock/doc.go":    "// Package clock is.\n//\n// # Guarantees\n//\n//\tit holds  FuzzTwo\npackage clock\n",
			"clock/x_test.go": "package clock_test\n\nfunc FuzzTwo(f *testing.F) {}\n",
		}, "does not say when not to use"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantFinding(t, check, tc.files, tc.want) })
	}
}

func TestCommentsFindsNamesWithout(t *testing.T) {
	const check = "exported names have a comment"
	for _, tc := range []struct{ name, source, want string }{
		{"function", "func F() {}", "exported F has no comment"},
		{"function with", "// F is.\nfunc F() {}", ""},
		{"unexported", "func f() {}", ""},
		{"method", "// T is.\ntype T[A any] struct{}\n\nfunc (t *T[A]) M() {}", "exported M has no comment"},
		{"method of an unexported type", "type t struct{}\n\nfunc (t) M() {}", ""},
		{"type", "type T struct{}", "exported T has no comment"},
		{"type in a group with a comment", "// Types.\ntype (\n\tT struct{}\n)", "exported T has no comment"},
		{"constant", "const C = 1", "exported C has no comment"},
		{"constants with a comment", "// Cs.\nconst (\n\tC = 1\n\tD = 2\n)", ""},
		{"constant with a comment behind", "const (\n\tC = 1 // one\n)", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantFinding(t, check, map[string]string{"clock/clock.go": "package clock\n\n" + tc.source + "\n"}, tc.want)
		})
	}
	t.Run("an internal package", func(t *testing.T) {
		wantFinding(t, check, map[string]string{"internal/x/x.go": "package x\n\nfunc F() {}\n"}, "")
	})
}
