package arch

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// policyFiles checks that who knows one policy folder knows all: each has a doc.go and keeps its types in files of the
// same names. A file that would hold five lines may be merged into one of the others, so a missing file is no mistake;
// a type outside its file is, when that file is there. The policy itself is always in the file of its name.
func (t *Tree) policyFiles() (wrong []string) {
	for _, p := range t.Packages {
		if path.Dir(p.Dir) != "policy" {
			continue
		}
		own := path.Base(p.Dir) + ".go"
		if p.File("doc.go") == nil {
			wrong = append(wrong, p.Dir+": policy folder has no doc.go")
		}
		for _, f := range p.Files {
			if f.Test() {
				continue
			}
			for _, spec := range typeSpecs(f.Syntax) {
				if text := misplaced(p, f, spec, own); text != "" {
					wrong = append(wrong, t.at(spec)+": "+text)
				}
			}
		}
	}
	return wrong
}

// misplaced says where a type belongs, or "" if it may stay.
func misplaced(p *Package, f *File, spec *ast.TypeSpec, own string) string {
	homes := map[string]string{
		"Config":   "config.go",
		"Option":   "option.go",
		"Policy":   own,
		"Error":    "error.go",
		"Snapshot": "snapshot.go",
	}
	home, ok := homes[spec.Name.Name]
	if !ok && isEvent(spec) {
		home, ok = "event.go", true
	}
	if !ok || f.Name() == home {
		return ""
	}
	if home == own || p.File(home) != nil {
		return fmt.Sprintf("type %s belongs in %s/%s", spec.Name.Name, p.Dir, home)
	}
	mergeable := []string{"config.go", "option.go", own, "error.go", "event.go", "snapshot.go"}
	if slices.Contains(mergeable, f.Name()) {
		return ""
	}
	return fmt.Sprintf("type %s belongs in %s/%s, or merged into one of %s",
		spec.Name.Name, p.Dir, home, strings.Join(mergeable, ", "))
}

// isEvent tells an event by the Meta that it embeds.
func isEvent(spec *ast.TypeSpec) bool {
	s, ok := spec.Type.(*ast.StructType)
	return ok && slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		return len(f.Names) == 0 && isSelector(f.Type, "policy", "Meta")
	})
}

func typeSpecs(f *ast.File) (specs []*ast.TypeSpec) {
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					specs = append(specs, s)
				}
			}
		}
	}
	return specs
}
