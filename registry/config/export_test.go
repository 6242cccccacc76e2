package config

// The table, for the tests that hold it against what it drives.

type Attribute struct {
	Section, Policy, Key, Kind, Unit, Range, Default, Doc string
	Words                                                 []string
	Endless, Layer, InFile                                bool
	Code, Example                                         string
}

func Table() []Attribute {
	var all []Attribute
	for i := range sections {
		s := &sections[i]
		for k := range s.attrs {
			a := &s.attrs[k]
			all = append(all, Attribute{
				s.key, s.policy, a.key, kindNames[a.kind], a.unit, a.in.text, a.initial, a.doc,
				a.words, a.endless, a.layer, a.inFile, a.code, a.example,
			})
		}
	}
	return all
}

var kindNames = [...]string{"duration", "whole number", "number", "boolean", "word", "id"}

func SectionDoc(key string) string { return sections[sectionIndex(key)].doc }

func InstanceKeys() [2]string { return [2]string{configAttr.doc, criticalAttr.doc} }

// Outside is what is wrong with the size of a value by the table.
func Outside(section, key string, v any) string {
	got, _ := sections[sectionIndex(section)].find(key).outside(v)
	return got
}
