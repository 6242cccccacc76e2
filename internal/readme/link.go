package readme

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ (.*)$`)
	unsaid  = regexp.MustCompile(`[^\p{L}\p{N} _-]`) // what a heading's anchor leaves out
)

// Links returns a text for each link of the Markdown file that leads to a file or a heading of this repository that is
// not there. Links to other sites are not followed.
func Links(fsys fs.FS, file string) (wrong []string, err error) {
	lines, err := prose(fsys, file)
	if err != nil {
		return nil, err
	}
	for i, l := range lines {
		for _, m := range link.FindAllStringSubmatch(l, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if text := follow(fsys, file, m[1]); text != "" {
				wrong = append(wrong, fmt.Sprintf("%s:%d: %s", file, i+1, text))
			}
		}
	}
	return wrong, nil
}

// follow returns what is wrong with a link in file, or "".
func follow(fsys fs.FS, file, to string) string {
	name, anchor, _ := strings.Cut(to, "#")
	target := file
	if name != "" {
		target = path.Join(path.Dir(file), name)
	}
	if _, err := fs.Stat(fsys, target); err != nil {
		return fmt.Sprintf("the link %s leads nowhere: %v", to, err)
	}
	if anchor == "" {
		return ""
	}
	lines, err := prose(fsys, target)
	if err != nil {
		return fmt.Sprintf("the link %s: %v", to, err)
	}
	for _, l := range lines {
		if m := heading.FindStringSubmatch(l); m != nil && anchorOf(m[1]) == anchor {
			return ""
		}
	}
	return fmt.Sprintf("the link %s: %s has no such heading", to, target)
}

// anchorOf is how a heading is linked to.
func anchorOf(heading string) string {
	return strings.ReplaceAll(strings.ToLower(unsaid.ReplaceAllString(heading, "")), " ", "-")
}

// prose returns the lines of a Markdown file, with those of code blocks empty.
func prose(fsys fs.FS, file string) ([]string, error) {
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(text), "\n")
	fenced := false
	for i, l := range lines {
		fence := strings.HasPrefix(l, "```")
		if fence || fenced || strings.HasPrefix(l, "    ") {
			lines[i] = ""
		}
		if fence {
			fenced = !fenced
		}
	}
	return lines, nil
}
