package config

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
)

// JSON writes a character outside the basic plane as two escapes, "\ud83d\ude00";
// YAML has one of eight digits, "\U0001F600", and takes the halves for errors.
// That is the one thing in which a YAML parser does not read JSON.

// shift is by how many columns a replacement moved what follows it in its line.
const shift = len(`\ud83d\ude00`) - len(`\U0001F600`)

// shifts are, by line, the columns in the new text that follow a replacement.
type shifts map[int][]int

// joinSurrogates replaces the pairs in data if it is JSON, where a backslash
// stands in strings alone.
func joinSurrogates(data []byte) ([]byte, shifts) {
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) == 0 || t[0] != '{' || !bytes.Contains(data, []byte(`\u`)) {
		return data, nil
	}
	out := make([]byte, 0, len(data))
	moved := shifts{}
	line, col := 1, 1
	for i := 0; i < len(data); {
		if c, ok := surrogatePair(data[i:]); ok {
			out = fmt.Appendf(out, `\U%08X`, c)
			i, col = i+len(`\ud83d\ude00`), col+len(`\U0001F600`)
			moved[line] = append(moved[line], col)
			continue
		}
		_, size := utf8.DecodeRune(data[i:])
		if data[i] == '\\' && i+1 < len(data) && data[i+1] == '\\' {
			size, col = 2, col+1 // an escaped backslash begins no other escape
		}
		out = append(out, data[i:i+size]...)
		if col++; data[i] == '\n' {
			line, col = line+1, 1
		}
		i += size
	}
	return out, moved
}

// surrogatePair returns the character that text begins with two escapes for.
func surrogatePair(text []byte) (rune, bool) {
	if len(text) < len(`\ud83d\ude00`) || text[0] != '\\' || text[1] != 'u' || text[6] != '\\' || text[7] != 'u' {
		return 0, false
	}
	high, err1 := strconv.ParseUint(string(text[2:6]), 16, 16)
	low, err2 := strconv.ParseUint(string(text[8:12]), 16, 16)
	c := utf16.DecodeRune(rune(high), rune(low))
	return c, err1 == nil && err2 == nil && c != utf8.RuneError
}

// column is the column in the text as it was given.
func (s shifts) column(line, col int) int {
	n := 0
	for _, from := range s[line] {
		if col >= from {
			n++
		}
	}
	return col + n*shift
}

// restore moves the nodes to the columns that they have in the text as it was
// given.
func (s shifts) restore(nodes map[*yaml.Node]*node) {
	if len(s) == 0 {
		return
	}
	for _, n := range nodes {
		n.col = s.column(n.line, n.col)
		for i := range n.entries {
			n.entries[i].col = s.column(n.entries[i].line, n.entries[i].col)
		}
		for i := range n.faults {
			n.faults[i].col = s.column(n.faults[i].line, n.faults[i].col)
		}
	}
}
