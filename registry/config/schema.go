package config

import (
	"encoding/json"
	"math"
	"strings"
)

// Schema returns the JSON Schema (draft 2020-12) of the configuration file, for
// editors: with the first line
//
//	# yaml-language-server: $schema=resilience.schema.json
//
// one completes the keys and underlines what is wrong. [Parse] refuses whatever
// the schema refuses, and more: what a schema cannot say, such as a reference to
// a config that is not there, or what only the merged settings show.
func Schema() []byte {
	schema := object{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "resilience4cata configuration",
		"type":                 "object",
		"additionalProperties": false,
		"patternProperties":    object{"^x-": true},
		"properties": object{
			topConfigs:   entitySchema("#/$defs/config", "Settings to build on, by name; default is for every instance."),
			topInstances: entitySchema("#/$defs/instance", "Settings of one instance, by id."),
		},
		"$defs": object{
			"config":   policiesSchema(topConfigs),
			"instance": policiesSchema(topInstances),
		},
	}
	text, err := json.MarshalIndent(schema, "", "  ") // maps come out sorted
	if err != nil {
		panic("config: the schema cannot be written: " + err.Error()) // it holds strings, numbers and maps alone
	}
	return append(text, '\n')
}

// object is a JSON object.
type object = map[string]any

const idPattern = `^\S(.*\S)?$`

func entitySchema(ref, doc string) object {
	return object{
		"description":          doc,
		"type":                 "object",
		"propertyNames":        object{"pattern": idPattern},
		"additionalProperties": object{"$ref": ref},
	}
}

// policiesSchema is the schema of a section of top. The values of an instance
// are final, so that they must be in range; those of a config may be overridden.
func policiesSchema(top string) object {
	properties := object{}
	for i := range sections {
		s := &sections[i]
		keys := object{}
		for k := range s.attrs {
			a := &s.attrs[k]
			group, key, nested := strings.Cut(a.key, ".")
			if !nested {
				keys[a.key] = a.schema(top == topInstances)
				continue
			}
			if keys[group] == nil {
				keys[group] = object{"type": "object", "additionalProperties": false, "minProperties": 1, "properties": object{}}
			}
			keys[group].(object)["properties"].(object)[key] = a.schema(top == topInstances)
		}
		properties[s.key] = object{"description": s.doc, "type": "object", "additionalProperties": false, "properties": keys}
	}
	if top == topInstances {
		properties[configAttr.key] = configAttr.schema(true)
		properties[criticalAttr.key] = criticalAttr.schema(true)
	}
	return object{"type": "object", "additionalProperties": false, "properties": properties}
}

// durationBody is Go's syntax of durations without a sign.
const durationBody = `(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+`

func (a *attribute) schema(ranged bool) object {
	s := object{}
	switch a.kind {
	case kindDuration:
		pattern := `^[-+]?(` + durationBody + `|0)$`
		if ranged && a.in.lo >= 0 {
			pattern = `^\+?(` + durationBody + `|0)$`
		}
		s["anyOf"] = []any{object{"type": "string", "pattern": pattern}, object{"const": 0}}
	case kindInt, kindFloat:
		s["type"] = "integer"
		if a.kind == kindFloat {
			s["type"] = "number"
		}
		if ranged {
			if !math.IsInf(a.in.lo, 0) && a.in.open {
				s["exclusiveMinimum"] = a.in.lo
			} else if !math.IsInf(a.in.lo, 0) {
				s["minimum"] = a.in.lo
			}
			if !math.IsInf(a.in.hi, 0) {
				s["maximum"] = a.in.hi
			}
		}
	case kindBool:
		s["type"] = "boolean"
	case kindWord:
		s["enum"] = a.words
	case kindID:
		s["type"], s["pattern"] = "string", idPattern
	}
	if a.endless {
		s = object{"anyOf": []any{s, object{"const": unlimited}}}
	}
	s["description"] = a.doc
	if a.initial != "" {
		s["default"] = a.jsonDefault()
	}
	return s
}

// jsonDefault is the built-in default as JSON.
func (a *attribute) jsonDefault() any {
	switch a.kind {
	case kindInt, kindFloat:
		return json.Number(a.initial)
	case kindBool:
		return a.initial == "true"
	default:
		return a.initial
	}
}
