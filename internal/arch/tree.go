package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// File is a Go file of the repository.
type File struct {
	Path   string // relative to the root of the repository, with slashes
	Lines  int
	Syntax *ast.File
}

// Name returns the last element of the path.
func (f *File) Name() string { return path.Base(f.Path) }

// Test reports whether only go test compiles the file.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Package is a folder of the root module that holds Go files. The external test package counts as part of it.
type Package struct {
	Dir   string // relative to the module; "." for the root
	Files []*File
}

// Name returns the name in the package clauses, without the suffix of an external test package.
func (p *Package) Name() string {
	return strings.TrimSuffix(p.Files[0].Syntax.Name.Name, "_test")
}

// File returns the file with the given name, or nil.
func (p *Package) File(name string) *File {
	i := slices.IndexFunc(p.Files, func(f *File) bool { return f.Name() == name })
	if i < 0 {
		return nil
	}
	return p.Files[i]
}

// Tree is a repository as it was read. It is not changed after Load.
type Tree struct {
	Packages []*Package // of the root module, sorted by folder
	Nested   []*File    // Go files of the modules below the root one
	GoMod    string     // the text of the root module's go.mod

	fset *token.FileSet
}

// Load reads all Go files under the root of a repository. Like the go command it leaves out testdata and every folder
// whose name begins with a dot or an underscore. A file that does not parse is an error.
func Load(fsys fs.FS) (*Tree, error) {
	goMod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	t := &Tree{GoMod: string(goMod), fset: token.NewFileSet()}
	packages := map[string]*Package{}
	var nested []string // folders of the other modules
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if ignored(name) {
				return fs.SkipDir
			}
			if _, err := fs.Stat(fsys, path.Join(name, "go.mod")); err == nil && name != "." {
				nested = append(nested, name)
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		f, err := t.parse(fsys, name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(nested, func(dir string) bool { return within(name, dir) }) {
			t.Nested = append(t.Nested, f)
			return nil
		}
		dir := path.Dir(name)
		if packages[dir] == nil {
			packages[dir] = &Package{Dir: dir}
			t.Packages = append(t.Packages, packages[dir])
		}
		packages[dir].Files = append(packages[dir].Files, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(t.Packages, func(a, b *Package) int { return strings.Compare(a.Dir, b.Dir) })
	return t, nil
}

func ignored(dir string) bool {
	base := path.Base(dir)
	return dir != "." && (base == "testdata" || base[0] == '.' || base[0] == '_')
}

func (t *Tree) parse(fsys fs.FS, name string) (*File, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	syntax, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &File{Path: name, Lines: bytes.Count(src, []byte("\n")), Syntax: syntax}, nil
}

// at formats the place of a node as file:line.
func (t *Tree) at(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}
