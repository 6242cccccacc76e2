package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// The limits of a file. A registry of ten thousand instances with a line or two
// each takes about one megabyte and two hundred thousand values.
const (
	maxBytes  = 2 << 20 // the text
	maxValues = 1 << 19 // keys and values, with aliases expanded; about 500 B each while parsing
	maxDepth  = 32      // nesting
)

// Load reads and parses the configuration file at path, whose name ends in
// .yaml, .yml or .json. See [Parse]. Where the file cannot be read, [errors.Is]
// finds the cause, such as [io/fs.ErrNotExist], beside the *[Error].
func Load(path string) (*Config, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".yaml", ".yml", ".json":
	default:
		return nil, &Error{
			Code: codeFile, File: path, Got: "the ending " + quote(ext) + " is not known",
			Hint: "name the file .yaml, .yml or .json",
		}
	}
	data, err := read(path)
	if err != nil {
		cause := err
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			cause = pathErr.Err // the path is in our own text
		}
		return nil, &readError{Error{Code: codeFile, File: path, Got: "the file cannot be read: " + cause.Error()}, err}
	}
	return Parse(path, data)
}

// read returns the content of the file, at most one byte more than is legal: a
// path may name a pipe or a device without end.
func read(path string) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

// readError is a mistake with a cause of the operating system's.
type readError struct {
	mistake Error
	cause   error
}

func (e *readError) Error() string   { return e.mistake.Error() }
func (e *readError) Unwrap() []error { return []error{&e.mistake, e.cause} }

// Parse parses a configuration in YAML or in JSON, which is read as the YAML
// that it is. The name stands for the file in errors and origins; it may be any
// text, and its ending, unlike that of [Load]'s path, says nothing.
//
// All mistakes are returned at once, sorted by position, each as an *[Error],
// joined: list them with [policy.ConfigErrors]. A Config comes back only if there
// are none. An empty document is an empty Config.
//
// Text above 2 MiB, of more than 524,288 values or nested deeper than 32 is
// refused, so that the cost of hostile text is bounded too. Data is not kept.
func Parse(name string, data []byte) (*Config, error) {
	r := &report{file: name}
	root := parse(r, data)
	c := &Config{}
	if root != nil {
		b := &binder{report: r, config: c}
		b.document(root)
	}
	if len(r.errs) == 0 || root != nil {
		c.check(r)
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return c, nil
}

// parse returns the tree of data, or nil if it is empty or cannot be parsed.
func parse(r *report, data []byte) *node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if e := checkText(data); e != nil {
		r.add(*e)
		return nil
	}
	data, moved := joinSurrogates(data)
	doc, e := load(data)
	if e == nil && doc != nil {
		b := &builder{done: map[*yaml.Node]*node{}}
		root, problem := b.document(doc.Content[0])
		if problem == nil {
			moved.restore(b.done)
			if root.shape == shapeNull && root.text == "" {
				return nil // a document of comments, or of "---" alone
			}
			return root
		}
		e = &Error{Code: codeLimit, Line: problem.line, Col: problem.col, Got: problem.got, Hint: problem.hint}
	}
	if e != nil {
		e.Col = moved.column(e.Line, e.Col)
		r.add(*e)
	}
	return nil
}

// checkText finds what makes data no text, or too much of it, before the parser
// spends time on it.
func checkText(data []byte) *Error {
	if len(data) > maxBytes {
		return &Error{Code: codeLimit, Got: fmt.Sprintf("the file is larger than %d MiB", maxBytes>>20), Hint: "split the service, or share settings under configs"}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return &Error{Code: codeSyntax, Line: 1, Col: 1, Got: "the file is UTF-16", Hint: "save it as UTF-8"}
	}
	line, col, values := 1, 1, 0
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		switch {
		case c == utf8.RuneError && size <= 1:
			return &Error{Code: codeSyntax, Line: line, Col: col, Got: fmt.Sprintf("the byte 0x%02x is not UTF-8", data[i]), Hint: "save the file as UTF-8"}
		case c < ' ' && c != '\t' && c != '\n' && c != '\r':
			return &Error{Code: codeSyntax, Line: line, Col: col, Got: fmt.Sprintf("the control character 0x%02x is not text", c), Hint: `remove it, or write it as an escape in double quotes`}
		case c == '\n':
			line, col = line+1, 0
		}
		// Each value but the first has one of these in front of it, "-" and "?"
		// with space after them.
		switch c {
		case '\n', '\r', ',', ':', '[', '{':
			values++
		case '-', '?':
			if i+1 < len(data) && data[i+1] <= ' ' {
				values++
			}
		}
		i, col = i+size, col+1
	}
	if values > maxValues {
		return &Error{Code: codeLimit, Got: fmt.Sprintf("the file has more than %d values", maxValues), Hint: "split the service, or share settings under configs"}
	}
	return nil
}

// load parses the one document in data; nil without any.
func load(data []byte) (*yaml.Node, *Error) {
	tooDeep := false
	limits := loaderlimits.New(loaderlimits.DepthFunc(func(depth int, _ *yaml.DepthContext) error {
		if tooDeep = depth > maxDepth; tooDeep {
			return errTooDeep
		}
		return nil
	}))
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(limits))
	if err != nil {
		return nil, syntaxError(err)
	}
	var doc, second yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil && tooDeep:
		e := syntaxError(err)
		e.Code, e.Got, e.Hint = codeLimit, "the nesting is deeper than "+strconv.Itoa(maxDepth), "a configuration has five levels"
		return nil, e
	case err != nil:
		return nil, syntaxError(err)
	}
	switch err := loader.Load(&second); {
	case err == nil:
		return nil, &Error{Code: codeSyntax, Line: second.Line, Col: second.Column, Got: "a second document begins", Hint: "a configuration is one document"}
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(err)
	}
	return &doc, nil
}

var errTooDeep = errors.New("too deep")

// syntaxError is the parser's error as one of ours.
func syntaxError(err error) *Error {
	e := &Error{Code: codeSyntax, Got: err.Error()}
	var load *yaml.LoadError
	if errors.As(err, &load) {
		e.Got, e.Line, e.Col = load.Message, load.Mark.Line, load.Mark.Column
		if c := load.ContextMark; load.ContextMsg != "" && c.Line > 0 && c != load.Mark {
			e.Hint = fmt.Sprintf("%s that begins at %d:%d", load.ContextMsg, c.Line, c.Column)
		}
	}
	if strings.Contains(e.Got, "cannot start any token") {
		e.Hint = "YAML indents with spaces, not tabs; a text that begins with @, ` or % needs quotes"
	}
	return e
}
