package pages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Block is a command block of a page.
type Block struct {
	Page    string
	Line    int    // of its first line, from 1
	Console bool   // it has output, too
	Text    string // without the fences
	NotRun  string // why it isn't run
	Given   string // shell that runs before it
	Stopped string // after how long each call of leasehold in it is interrupted
	With    []string
}

func (b Block) String() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

var marks = regexp.MustCompile(`(?s)^<!-- (not run|given|with|stopped|one session)(?:: (.*?))? -->$`)

// Blocks reads the command blocks of a page, and whether they are one session.
func Blocks(page, text string) (all []Block, oneSession bool, err error) {
	lines := strings.Split(text, "\n")
	next := Block{Page: page}
	marked := 0
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "<!--"):
			comment, from := line, i+1
			for !strings.Contains(lines[i], "-->") && i+1 < len(lines) {
				i++
				comment += "\n" + lines[i]
			}
			m := marks.FindStringSubmatch(comment)
			if m == nil {
				break
			}
			if m[1] == "one session" {
				oneSession = true
				break
			}
			if !next.mark(m[1], strings.TrimSpace(m[2])) {
				return nil, false, fmt.Errorf("%s:%d: not run: say why", page, from)
			}
			marked = from
		case strings.HasPrefix(line, "```"):
			language, body := strings.TrimPrefix(line, "```"), []string{}
			begin := i + 2
			for i++; i < len(lines) && !strings.HasPrefix(lines[i], "```"); i++ {
				body = append(body, lines[i])
			}
			console := language == "console" || language == "" && len(body) > 0 && strings.HasPrefix(body[0], "$ ")
			if console || language == "sh" {
				next.Line, next.Console, next.Text = begin, console, strings.Join(body, "\n")
				all = append(all, next)
			} else if marked > 0 {
				return nil, false, fmt.Errorf("%s:%d: the comment is for a block in sh or console, and this is none", page, marked)
			}
			next, marked = Block{Page: page}, 0
		case strings.TrimSpace(line) != "" && marked > 0:
			return nil, false, fmt.Errorf("%s:%d: no block follows the comment", page, marked)
		}
	}
	return all, oneSession, nil
}

// mark has the block be as a comment says. It reports whether that is enough.
func (b *Block) mark(what, value string) bool {
	switch what {
	case "not run":
		b.NotRun = value
		return len(value) >= 10
	case "given":
		b.Given += value + "\n"
	case "stopped":
		b.Stopped = value
	case "with":
		b.With = append(b.With, strings.Fields(value)...)
	}
	return true
}

// step is what is typed, and what is to come back.
type step struct {
	command, want string
}

// steps are the commands of a block in console.
func (b Block) steps() (all []step) {
	lines := strings.Split(b.Text, "\n")
	for i := 0; i < len(lines); i++ {
		command, typed := strings.CutPrefix(lines[i], "$ ")
		if !typed {
			if len(all) > 0 {
				all[len(all)-1].want += lines[i] + "\n"
			}
			continue
		}
		for strings.HasSuffix(command, `\`) && i+1 < len(lines) {
			i++
			command += "\n" + lines[i]
		}
		// What follows is the command's, up to that word.
		if m := document.FindStringSubmatch(command); m != nil {
			for ended := false; !ended && i+1 < len(lines); {
				i++
				command += "\n" + lines[i]
				ended = lines[i] == m[1]
			}
		}
		all = append(all, step{command: command})
	}
	return all
}

var (
	document  = regexp.MustCompile(`<<'?([A-Z]+)'?`)
	program   = regexp.MustCompile(`(?:^|[\s(='])\./([a-z][a-z0-9_.-]*)`)
	calls     = regexp.MustCompile(`(?m)(?:^|[(|&;]\s*|^\$ |(?:if|then|do|exec) |=\$\()((?:[A-Z_]+=\S* )*)leasehold( [^\n]*)?$`)
	words     = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
	endOfCall = []string{"|", "||", "&&", "&", ";", ")", "#"}
)

// programs are those that the block calls as ./NAME.
func (b Block) programs() (all []string) {
	for _, m := range program.FindAllStringSubmatch(b.Text, -1) {
		all = append(all, m[1])
	}
	return all
}

// Calls returns the arguments of each call of leasehold in the block that has no gap in it, such as
// […] or an ellipsis.
func (b Block) Calls() (all [][]string) {
	text := b.Text
	if b.Console {
		text = ""
		for _, s := range b.steps() {
			text += s.command + "\n"
		}
	}
	text = strings.ReplaceAll(text, "\\\n", " ")
	for _, m := range calls.FindAllStringSubmatch(text, -1) {
		if args, ok := arguments(m[2]); ok {
			all = append(all, args)
		}
	}
	return all
}

// arguments splits what follows the program's name, up to the end of the call.
func arguments(text string) (args []string, whole bool) {
	for text = strings.TrimLeft(text, " "); text != ""; text = strings.TrimLeft(text, " ") {
		word := ""
		for text != "" && text[0] != ' ' {
			m := words.FindString(text)
			if !strings.HasPrefix(text, m) || m == "" {
				return nil, false
			}
			part := m
			if m[0] != '\'' && m[0] != '"' {
				if i := strings.IndexAny(m, " "); i >= 0 {
					part = m[:i]
				}
				word += part
			} else {
				word += m[1 : len(m)-1]
				part = m
			}
			text = text[len(part):]
		}
		redirects := strings.HasPrefix(word, ">") || strings.HasPrefix(word, "2>") || strings.HasPrefix(word, "<")
		if slices.Contains(endOfCall, word) || redirects {
			return args, true
		}
		if word == "…" || strings.HasPrefix(word, "[") {
			return nil, false
		}
		for _, end := range []string{";", ")"} {
			if before, _ := strings.CutSuffix(word, end); before != word {
				return append(args, before), true
			}
		}
		args = append(args, word)
	}
	return args, true
}
