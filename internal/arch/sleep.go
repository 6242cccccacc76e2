package arch

import (
	"go/ast"
	"strings"
)

// sleeps finds time.Sleep in tests where it would wait for the system's clock: outside a function literal that is
// handed to synctest.Test, and outside the files named bubble*_test.go, whose helpers are called from bubbles only.
// A linter that knows names but not places cannot tell the two apart.
func (t *Tree) sleeps() (wrong []string) {
	for _, p := range t.Packages {
		for _, f := range p.Files {
			if !f.Test() || strings.HasPrefix(f.Name(), "bubble") {
				continue
			}
			for _, n := range sleepsOutsideBubbles(f.Syntax) {
				wrong = append(wrong, t.at(n)+": time.Sleep in a test outside a bubble; "+
					"use clock.NewManual, wait for an event, or call it inside synctest.Test")
			}
		}
	}
	return wrong
}

func sleepsOutsideBubbles(f *ast.File) (found []ast.Node) {
	timeName, bubble := localName(f, "time"), localName(f, "testing/synctest")
	var visit func(ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if !isSelector(n.Fun, bubble, "Test") {
				return true
			}
			for _, arg := range n.Args { // everything but the bubble's own function
				if _, ok := arg.(*ast.FuncLit); !ok {
					ast.Inspect(arg, visit)
				}
			}
			return false
		case *ast.SelectorExpr:
			if isSelector(n, timeName, "Sleep") {
				found = append(found, n)
			}
		}
		return true
	}
	ast.Inspect(f, visit)
	return found
}
