package config

import (
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// shape is what a node is.
type shape uint8

const (
	shapeNull   shape = iota // null, ~ or nothing at all
	shapeString              // text, quoted or not
	shapeInt                 // a plain number without fraction
	shapeFloat               // any other plain number
	shapeBool                // a plain true or false
	shapeMap                 // keys and values
	shapeList                // a list: nothing in a configuration is one
)

// String is the shape as error messages call it.
func (s shape) String() string {
	return [...]string{"null", "text", "a number", "a number", "a boolean", "a section", "a list"}[s]
}

// node is one value of a document, freed of its syntax: aliases and merge keys
// are resolved. Nodes are shared between the places that refer to one anchor,
// and never written to once they are built.
type node struct {
	place
	shape   shape
	text    string // of a scalar
	entries []entry
	faults  []fault // what is wrong with the node itself; told with the path of who reads it
}

// entry is one key and its value.
type entry struct {
	place
	key   string
	value *node
}

// fault is a mistake whose path is not known yet.
type fault struct {
	place
	code, got, hint string
}

// builder turns YAML nodes into a tree. It bounds what aliases can multiply.
type builder struct {
	done  map[*yaml.Node]*node // nil: being built
	spent int
}

// tooMuch ends the building; document recovers it.
type tooMuch struct {
	place
	got, hint string
}

func at(n *yaml.Node) place { return place{n.Line, n.Column} }

func (b *builder) spend(n int, where *yaml.Node) {
	if b.spent += n; b.spent > maxValues {
		panic(tooMuch{at(where), "its aliases expand to more than " + strconv.Itoa(maxValues) + " values", "write less of the file through anchors"})
	}
}

// document builds the tree of a document's root. Of a map at the root, keys that
// begin with "x-" are left out: only what is referred to from elsewhere counts.
func (b *builder) document(root *yaml.Node) (n *node, problem *tooMuch) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case tooMuch:
			n, problem = nil, &p
		default:
			panic(p)
		}
	}()
	if root.Kind == yaml.MappingNode {
		pruned := *root
		pruned.Content = nil
		for i := 0; i+1 < len(root.Content); i += 2 {
			if key := root.Content[i]; key.Kind != yaml.ScalarNode || !strings.HasPrefix(key.Value, "x-") {
				pruned.Content = append(pruned.Content, key, root.Content[i+1])
			}
		}
		root = &pruned
	}
	return b.build(root, 0), nil
}

func (b *builder) build(y *yaml.Node, depth int) *node {
	b.spend(1, y)
	if depth > maxDepth {
		panic(tooMuch{at(y), "the nesting is deeper than " + strconv.Itoa(maxDepth), "a configuration has five levels"})
	}
	if y.Kind == yaml.AliasNode {
		return b.build(y.Alias, depth+1)
	}
	n, seen := b.done[y]
	switch {
	case n != nil:
		return n
	case seen:
		panic(tooMuch{at(y), "the anchor " + quote(y.Anchor) + " contains itself", "no value can be inside itself"})
	}
	if y.Kind != yaml.ScalarNode { // a scalar cannot contain itself
		b.done[y] = nil
	}
	n = &node{place: at(y)}
	if y.Style&yaml.TaggedStyle != 0 || y.Tag == "!" {
		n.faults = append(n.faults, fault{n.place, codeSyntax, "the tag " + quote(y.Tag) + " is not supported", "write the value without a tag"})
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.shape = shapeMap
		b.entries(n, y, depth)
	case yaml.SequenceNode:
		n.shape = shapeList
	default:
		n.shape, n.text = scalar(y), y.Value
	}
	b.done[y] = n
	return n
}

func scalar(y *yaml.Node) shape {
	switch y.Tag {
	case "!!null":
		return shapeNull
	case "!!int":
		return shapeInt
	case "!!float":
		return shapeFloat
	case "!!bool":
		return shapeBool
	default: // a date is text here
		return shapeString
	}
}

// entries fills n with the keys of y: its own in order, then what it merges and
// does not have.
func (b *builder) entries(n *node, y *yaml.Node, depth int) {
	own := make(map[string]place, len(y.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		here := at(y.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode:
			n.faults = append(n.faults, fault{here, codeType, "a key is a list or a section", "write a word as key"})
			continue
		case key.Tag == "!!null":
			n.faults = append(n.faults, fault{here, codeNull, "a key is null", `write it in quotes if it is meant as text`})
			continue
		case key.Style&yaml.TaggedStyle != 0 || key.Tag == "!":
			n.faults = append(n.faults, fault{here, codeSyntax, "the tag " + quote(key.Tag) + " is not supported", "write the key without a tag"})
			continue
		}
		if first, twice := own[key.Value]; twice {
			n.faults = append(n.faults, fault{here, codeDuplicate, "duplicate key " + quote(key.Value), "the first is in line " + strconv.Itoa(first.line)})
			continue
		}
		own[key.Value] = here
		if key.Tag == "!!merge" {
			merges = append(merges, value)
			continue
		}
		n.entries = append(n.entries, entry{here, key.Value, b.build(value, depth+1)})
	}
	for _, m := range merges {
		b.merge(n, m, own, depth)
	}
}

// merge adds the entries of the map m, or of each map in the list m, whose keys
// are not in have yet: what stands nearer wins, and of a list the earlier one.
func (b *builder) merge(n *node, m *yaml.Node, have map[string]place, depth int) {
	target := m
	for hops := 0; target.Kind == yaml.AliasNode; hops++ {
		if hops > maxDepth {
			panic(tooMuch{at(m), "the nesting is deeper than " + strconv.Itoa(maxDepth), "a configuration has five levels"})
		}
		target = target.Alias
	}
	switch target.Kind {
	case yaml.MappingNode:
		from := b.build(m, depth+1)
		b.spend(len(from.entries), m)
		n.faults = append(n.faults, from.faults...)
		for _, e := range from.entries {
			if _, own := have[e.key]; !own {
				have[e.key] = e.place
				n.entries = append(n.entries, e)
			}
		}
	case yaml.SequenceNode:
		for _, item := range target.Content {
			if item.Kind == yaml.SequenceNode || item.Kind == yaml.AliasNode && item.Alias.Kind == yaml.SequenceNode {
				n.faults = append(n.faults, fault{at(item), codeType, "a list of lists under <<", "merge sections alone"})
				continue
			}
			b.spend(1, item)
			b.merge(n, item, have, depth+1)
		}
	default:
		n.faults = append(n.faults, fault{at(m), codeType, "<< merges a section, not " + b.build(m, depth+1).shape.String(), "refer to an anchor at a section"})
	}
}
