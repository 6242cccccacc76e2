package readme

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strings"
)

// Source returns what a snippet has to equal: the body of a function, or the whole file if function is empty.
func Source(fsys fs.FS, path, function string) (string, error) {
	src, err := fs.ReadFile(fsys, path)
	if err != nil {
		return "", err
	}
	if function == "" {
		return string(src), nil
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Body == nil || fn.Name.Name != function {
			continue
		}
		from, to := fset.Position(fn.Body.Lbrace).Offset+1, fset.Position(fn.Body.Rbrace).Offset
		return outdent(withoutOutput(string(src[from:to]))), nil
	}
	return "", fmt.Errorf("%s has no function %s", path, function)
}

// output is the start of the comment by which go test knows what an example prints. It is always the last thing in a
// body, so what follows belongs to it.
var output = regexp.MustCompile(`(?mi)^\s*//\s*(unordered )?output:`)

func withoutOutput(body string) string {
	if at := output.FindAllStringIndex(body, -1); at != nil {
		body = body[:at[len(at)-1][0]]
	}
	return strings.TrimSpace(body) + "\n"
}

// outdent takes away the one tab that gofmt puts before each line of a body. Lines of a raw string may have none.
func outdent(body string) string {
	return strings.ReplaceAll(body, "\n\t", "\n")
}

// Check returns a text for each snippet that differs from its origin in fsys.
func Check(fsys fs.FS, snippets []Snippet) (wrong []string) {
	for _, s := range snippets {
		want, err := Source(fsys, s.Path, s.Function)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%v: %v", s, err))
		case s.Code != want:
			wrong = append(wrong, fmt.Sprintf("%v: the block differs from its origin; it should read\n%s", s, want))
		}
	}
	return wrong
}

// Update returns the Markdown text with each snippet as its origin in fsys has it.
func Update(fsys fs.FS, file, markdown string) (string, error) {
	snippets, err := Snippets(file, markdown)
	if err != nil {
		return "", err
	}
	old := strings.SplitAfter(markdown, "\n")
	var b strings.Builder
	done := 0 // lines of old that b has
	for _, s := range snippets {
		code, err := Source(fsys, s.Path, s.Function)
		if err != nil {
			return "", fmt.Errorf("%v: %w", s, err)
		}
		b.WriteString(strings.Join(old[done:s.Line], ""))
		b.WriteString(code)
		done = s.Line + strings.Count(s.Code, "\n")
	}
	b.WriteString(strings.Join(old[done:], ""))
	return b.String(), nil
}
