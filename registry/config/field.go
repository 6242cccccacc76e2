package config

import (
	"reflect"
	"strings"
	"time"
)

// The keys of a policy are the json names of the fields of its Config, which is
// how the table and the structs are tied together; a test holds them equal.

// fieldNamed returns the field of v, a struct, with the json name.
func fieldNamed(v reflect.Value, name string) (reflect.Value, bool) {
	t := v.Type()
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// field returns the value of the field for a key, as a setting holds it. A key
// with a dot leads through a pointer; not ok: it is nil, so there is no value.
func field(v reflect.Value, key string) (value any, ok bool) {
	group, rest, nested := strings.Cut(key, ".")
	f, ok := fieldNamed(v, group)
	if !ok {
		return nil, false
	}
	if nested {
		if f.IsNil() {
			return nil, false
		}
		return field(f.Elem(), rest)
	}
	switch f.Kind() {
	case reflect.Int64:
		return time.Duration(f.Int()), true
	case reflect.Int:
		return int(f.Int()), true
	case reflect.Float64:
		return f.Float(), true
	case reflect.Bool:
		return f.Bool(), true
	case reflect.String:
		return f.String(), true
	default:
		return nil, false
	}
}

// setField writes a value that a setting holds. A section behind a pointer is
// made anew on its first key, so that it is never one that others point to.
func setField(v reflect.Value, key string, value any) {
	group, rest, nested := strings.Cut(key, ".")
	f, _ := fieldNamed(v, group)
	if nested {
		fresh := reflect.New(f.Type().Elem())
		if !f.IsNil() {
			fresh.Elem().Set(f.Elem())
		}
		f.Set(fresh)
		setField(fresh.Elem(), rest, value)
		return
	}
	f.Set(reflect.ValueOf(value).Convert(f.Type()))
}
