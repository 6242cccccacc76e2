package config

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSuggest bounds the words that are compared: the work grows with the square
// of the length, and nobody mistypes a name of two hundred letters by one.
const maxSuggest = 200

// Nearest returns the word in known that word was most likely meant to be, or ""
// if none is near. Words that differ in case alone are nearest; else the fewest
// insertions, deletions, replacements and swaps of neighbors count (optimal
// string alignment), at most a third of the word's length and at least one. Of
// equally near words the first one wins.
func Nearest(word string, known []string) string {
	if len(word) > maxSuggest {
		return ""
	}
	for _, k := range known {
		if strings.EqualFold(k, word) {
			return k
		}
	}
	a := []rune(strings.ToLower(word))
	best, nearest := max(1, len(a)/3)+1, ""
	for _, k := range known {
		if n := utf8.RuneCountInString(k); len(k) > maxSuggest || n-len(a) >= best || len(a)-n >= best {
			continue
		}
		if d := distance(a, []rune(strings.ToLower(k)), best); d < best {
			best, nearest = d, k
		}
	}
	return nearest
}

// distance is the Damerau-Levenshtein distance of a and b in its restricted form
// (no substring is edited twice). It gives up with limit once every way costs
// that much.
func distance(a, b []rune, limit int) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		if slices.Min(row) >= limit && slices.Min(last) >= limit {
			return limit
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// didYouMean is the hint that names the nearest word, or other where none is
// near.
func didYouMean(word string, known []string, other string) string {
	if near := Nearest(word, known); near != "" {
		return `did you mean "` + near + `"?`
	}
	return other
}

// hintSection is the way out of an unknown key where policies are named.
func hintSection(key string, allowed []string) string {
	for i := range sections { // a name from elsewhere is none of the near ones
		if slices.ContainsFunc(sections[i].synonyms, func(k string) bool { return strings.EqualFold(k, key) }) {
			return `did you mean "` + sections[i].key + `"?`
		}
	}
	if near := Nearest(key, allowed); near != "" {
		return `did you mean "` + near + `"?`
	}
	if key == "fallback" {
		return "a fallback is a function: give it in code"
	}
	for i := range sections {
		if near := Nearest(key, sections[i].synonyms); near != "" {
			return `did you mean "` + sections[i].key + `"?`
		}
	}
	if owners := owners(key, ""); len(owners) > 0 {
		return "did you mean " + either(owners) + "?"
	}
	return "known are " + strings.Join(allowed, ", ")
}

// hintKey is the way out of an unknown key in the section s.
func hintKey(s *section, key string) string {
	keys := make([]string, 0, len(s.attrs))
	for _, a := range s.attrs {
		top, _, _ := strings.Cut(a.key, ".")
		if !slices.Contains(keys, top) {
			keys = append(keys, top)
		}
	}
	if group, rest, dotted := strings.Cut(key, "."); dotted && s.find(key) != nil {
		return "write it as " + group + ": {" + rest + ": …}"
	}
	if key == nameAttr.key {
		return "a timeout keeps no state worth sharing, so it has no name"
	}
	if i := sectionIndex(key); i >= 0 && Nearest(key, keys) == "" {
		return `"` + key + `" is a policy of its own: move it out of "` + s.key + `"`
	}
	// The exact key of another policy is a key in the wrong section rather than
	// a misspelling in this one.
	if owners := owners(key, s.key); len(owners) > 0 && !slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, key) }) {
		return "did you mean " + either(owners) + "?"
	}
	for _, a := range s.attrs {
		if slices.ContainsFunc(a.synonyms, func(k string) bool { return strings.EqualFold(k, key) }) {
			return `did you mean "` + a.key + `"?`
		}
	}
	if near := Nearest(key, keys); near != "" {
		return `did you mean "` + near + `"?`
	}
	return "known are " + strings.Join(keys, ", ")
}

// owners are the paths, below an instance, of the keys spelled like key up to
// case, in sections other than the one named.
func owners(key, but string) []string {
	var found []string
	for i := range sections {
		s := &sections[i]
		if s.key == but {
			continue
		}
		for _, a := range s.attrs {
			if strings.EqualFold(a.key, key) || strings.EqualFold(a.key, "budget."+key) {
				found = append(found, s.key+"."+a.key)
			}
		}
	}
	return found
}

func either(paths []string) string {
	quoted := make([]string, len(paths))
	for i, p := range paths {
		quoted[i] = `"` + p + `"`
	}
	return strings.Join(quoted, " or ")
}
