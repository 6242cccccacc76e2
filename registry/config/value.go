package config

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// origin is where a setting came from.
type origin struct {
	file string // "env" for the environment
	place
}

// String is the origin as [Setting.Origin] has it.
func (o origin) String() string {
	if o.file == envFile || o.line == 0 {
		return o.file
	}
	return o.file + ":" + strconv.Itoa(o.line)
}

// source is the file as mistakes have it: of the environment the variable, which
// is the name by which it is found.
func (o origin) source() string { return sourceOf(o.file) }

func sourceOf(file string) string {
	if file == envFile {
		return EnvVariable
	}
	return file
}

// setting is one value that was given for an attribute.
type setting struct {
	attr  *attribute
	value any // time.Duration, int, float64, bool or string, by attr.kind
	path  string
	origin
}

// mistake returns an error at the setting.
func (s *setting) mistake(code, got, hint string) Error {
	return Error{Code: code, Path: s.path, Got: got, Hint: hint, File: s.file, Line: s.line, Col: s.col}
}

// Numbers are decimal: YAML's 010 is eight and its 1_0 is ten, which nobody
// expects of a limit.
var (
	decimalInt   = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)
	decimalFloat = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
)

// read returns the value of n as a asks for it, or what is wrong with it.
func (a *attribute) read(n *node) (any, *fault) {
	switch {
	case n.shape == shapeNull && a.code != codeEnabled:
		return nil, &fault{n.place, codeNull, "the value is null", "give " + a.wants() + ", or leave the key out"}
	case n.shape >= shapeMap:
		return nil, a.wrong(n, "")
	case a.endless && n.text == unlimited && a.kind == kindDuration:
		return time.Duration(-1), nil
	case a.endless && n.text == unlimited:
		return -1, nil
	}
	switch a.kind {
	case kindDuration:
		return a.readDuration(n)
	case kindInt:
		// To YAML, a number that is too large for it is a float, as is -0.
		if n.shape != shapeInt && n.shape != shapeFloat || !decimalInt.MatchString(n.text) {
			return nil, a.wrong(n, a.numberHint(n, decimalInt))
		}
		v, err := strconv.Atoi(n.text)
		if err == nil && v == -1 && a.endless {
			return nil, a.wrong(n, "write "+unlimited)
		}
		if err != nil {
			return nil, a.tooFar(n)
		}
		return v, nil
	case kindFloat:
		v, err := strconv.ParseFloat(n.text, 64)
		switch {
		case !decimalFloat.MatchString(n.text):
			return nil, a.wrong(n, a.numberHint(n, decimalFloat))
		case err != nil: // to YAML, too, a number that is too large is text
			return nil, a.tooFar(n)
		case n.shape == shapeString:
			return nil, a.wrong(n, a.numberHint(n, decimalFloat))
		}
		return v, nil
	case kindBool:
		if n.shape != shapeBool {
			return nil, a.wrong(n, boolHint(n.text))
		}
		return strings.EqualFold(n.text, "true"), nil
	case kindWord:
		if n.shape != shapeString || !slices.Contains(a.words, n.text) {
			return nil, a.wrong(n, didYouMean(n.text, a.words, a.beginning(n.text)))
		}
		return n.text, nil
	default: // kindID
		if n.shape != shapeString {
			return nil, a.wrong(n, "write it in quotes")
		}
		if got := checkID(n.text); got != "" {
			return nil, &fault{n.place, codeID, got, hintID}
		}
		return n.text, nil
	}
}

func (a *attribute) readDuration(n *node) (any, *fault) {
	if n.shape == shapeBool || n.shape == shapeNull {
		return nil, a.wrong(n, "")
	}
	d, err := time.ParseDuration(n.text)
	switch {
	case err == nil && d >= 0 && strings.HasPrefix(n.text, "-"):
		hint := "did you mean 0s?"
		if !a.in.holds(0) {
			hint = a.legal()
		}
		return nil, &fault{n.place, codeDuration, quote(n.text) + " is not a duration", hint}
	case err == nil && d == -1 && a.endless:
		f := a.wrong(n, "write "+unlimited)
		f.got = clip(n.text) + " is not " + a.wants()
		return nil, f
	case err == nil:
		return d, nil
	}
	if decimalFloat.MatchString(n.text) {
		return nil, &fault{n.place, codeDuration, clip(n.text) + " has no unit", a.unitHint(strings.TrimPrefix(n.text, "+"))}
	}
	f := &fault{n.place, codeDuration, quote(n.text) + " is not a duration", a.legal()}
	switch t := strings.ToLower(strings.ReplaceAll(n.text, " ", "")); {
	case a.endless && Nearest(n.text, []string{unlimited}) != "":
		f.hint = `did you mean "unlimited"?`
	case isDuration(t):
		f.hint = "did you mean " + t + "?"
	case strings.HasSuffix(t, "d") && isDuration(t[:len(t)-1]+"h"):
		f.hint = "there is no unit for days: write hours, 24h"
	}
	return nil, f
}

// unitHint is the way out of a number without a unit. Most are seconds; from a
// hundred on, somebody may as well have thought of milliseconds.
func (a *attribute) unitHint(number string) string {
	seconds, millis := number+"s", number+"ms"
	n, err := strconv.ParseFloat(number, 64)
	switch {
	case err == nil && n == -1 && a.endless:
		return "write " + unlimited
	case err != nil || n < 0 || !isDuration(millis):
		return a.legal()
	case n < 100:
		return "did you mean " + seconds + "?"
	case !isDuration(seconds):
		return "did you mean " + millis + "?"
	}
	return "did you mean " + millis + " or " + seconds + "?"
}

func isDuration(t string) bool {
	_, err := time.ParseDuration(t)
	return err == nil
}

// tooFar is the fault of a number that no variable could hold.
func (a *attribute) tooFar(n *node) *fault {
	if strings.HasPrefix(n.text, "-") {
		return &fault{n.place, codeRange, clip(n.text) + " is out of range", "give a value " + a.in.text}
	}
	return &fault{n.place, codeRange, clip(n.text) + " is too large", "give a smaller number"}
}

// wrong is the fault of a value of another type than a asks for. Without a hint
// that fits the value, it shows what a legal one looks like.
func (a *attribute) wrong(n *node, hint string) *fault {
	if hint == "" {
		hint = a.legal()
	}
	f := &fault{n.place, codeType, n.shape.String() + " is not " + a.wants(), hint}
	switch {
	case n.shape == shapeString:
		f.got = quote(n.text) + " is not " + a.wants()
	case n.shape < shapeMap && n.shape != shapeNull:
		f.got = clip(n.text) + " is not " + a.wants()
	}
	if a.code == codeEnabled {
		f.code = codeEnabled
	}
	return f
}

// wants says what a legal value is.
func (a *attribute) wants() string {
	or := ""
	if a.endless {
		or = " or " + unlimited
	}
	switch a.kind {
	case kindDuration:
		return "a duration" + or
	case kindInt:
		return "a whole number" + or
	case kindFloat:
		return "a number"
	case kindBool:
		return "true or false"
	case kindWord:
		return strings.Join(a.words[:len(a.words)-1], ", ") + " or " + a.words[len(a.words)-1]
	default:
		return "the text of an id"
	}
}

// legal shows what a legal value looks like.
func (a *attribute) legal() string {
	or := ""
	if a.endless {
		or = ", or " + unlimited
	}
	digits := "write decimal digits, such as "
	switch a.kind {
	case kindDuration:
		return "write a number and a unit, such as 250ms, 2s or 1m30s" + or
	case kindInt:
		return digits + "10" + or
	case kindFloat:
		if a.initial == "" || a.initial == "0" {
			return digits + "0.5"
		}
		return digits + a.initial
	case kindBool:
		return "write true or false"
	case kindWord:
		return "known are " + strings.Join(a.words, ", ")
	default:
		return "write one id, as text"
	}
}

// beginning is the hint that names the only word that text is the beginning of,
// or "".
func (a *attribute) beginning(text string) string {
	var words []string
	for _, w := range a.words {
		if text != "" && strings.HasPrefix(w, strings.ToLower(text)) {
			words = append(words, w)
		}
	}
	if len(words) != 1 {
		return ""
	}
	return `did you mean "` + words[0] + `"?`
}

// isShare reports whether a is a part of one.
func (a *attribute) isShare() bool {
	return a.kind == kindFloat && a.in.holds(1) && !a.in.holds(1.5)
}

// decimal writes a number as a file would have it.
func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func (a *attribute) numberHint(n *node, legal *regexp.Regexp) string {
	if text, percent := strings.CutSuffix(n.text, "%"); percent && a.isShare() {
		if x, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && a.in.holds(x/100) {
			return "did you mean " + decimal(x/100) + "?"
		}
	}
	if x, err := strconv.ParseFloat(n.text, 64); err == nil && n.shape == shapeFloat && a.kind == kindInt && x == math.Trunc(x) && a.in.holds(x) && x < 1<<31 {
		return "did you mean " + decimal(x) + "?"
	}
	switch {
	case n.shape == shapeString && legal.MatchString(n.text):
		return "write it without quotes"
	case n.shape == shapeString && a.endless:
		return didYouMean(n.text, []string{unlimited}, "")
	case n.shape == shapeInt:
		return "write it in decimal digits"
	}
	return ""
}

func boolHint(text string) string {
	switch strings.ToLower(text) {
	case "yes", "y", "on", "1", "true", "enabled":
		return "did you mean true?"
	case "no", "n", "off", "0", "false", "disabled":
		return "did you mean false?"
	}
	if near := Nearest(text, []string{"true", "false"}); near != "" {
		return "did you mean " + near + "?"
	}
	return "write true or false"
}

// outside returns what is wrong with the size of a value, "" for nothing. It
// looks at the value alone: what values say together is for the policy.
func (a *attribute) outside(v any) (got, hint string) {
	var x float64
	switch v := v.(type) {
	case time.Duration:
		x = float64(v)
	case int:
		x = float64(v)
	case float64:
		x = v
	default:
		return "", ""
	}
	if a.in.holds(x) || a.endless && x == -1 {
		return "", ""
	}
	hint = "give a value " + a.in.text
	if a.isShare() && x >= 2 && x <= 100 { // meant as percent
		hint += "; did you mean " + decimal(x/100) + "?"
	}
	if a.endless {
		hint += ", or " + unlimited
	}
	if a.code == codeTimeout {
		return format(a, v) + " is not a positive duration", "give a duration above 0, such as 2s, or leave the timeout out"
	}
	return format(a, v) + " is out of range", hint
}

// format writes a value as a file would have it.
func format(a *attribute, v any) string {
	switch v := v.(type) {
	case time.Duration:
		if a.endless && v == -1 {
			return unlimited
		}
		return v.String()
	case int:
		if a.endless && v == -1 {
			return unlimited
		}
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	default:
		s, _ := v.(string) // an attribute has no other kind
		return s
	}
}

// hintID is the way out of an id that is none.
const hintID = "give a name that can be printed, without space around it"

// checkID returns what is wrong with an id, "" for nothing (G-1).
func checkID(id string) string {
	switch {
	case id == "":
		return "the id is empty"
	case strings.TrimSpace(id) != id:
		return quote(id) + " begins or ends with a space"
	case !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return quote(id) + " has characters that cannot be printed"
	}
	return ""
}

// clip shortens a long text that is shown without quotes.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…" // numbers: one byte a character
	}
	return s
}
