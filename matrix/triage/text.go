package triage

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Texts of releases and images come from strangers. They are shown only inside of code, where
// GitHub neither renders HTML nor mentions people nor links issues, and without the characters
// that could hide or reorder what a reader sees.

// maxValue bounds a value that is shown in a line, in characters.
const maxValue = 300

// printable replaces what is not a visible character, keeps line breaks and tabs, and makes
// comments, and so markers, powerless.
func printable(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
	text = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return c
		case c == '\ufe0f' || c == '\u200d': // parts of emoji
			return -1
		case !unicode.IsGraphic(c):
			return '\ufffd'
		case unicode.IsSpace(c):
			return ' '
		}
		return c
	}, text)
	return strings.NewReplacer("<!--", "<! --", "-->", "-- >").Replace(text)
}

// clip shortens a text to so many bytes, at the border of a character.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// line is a text in one line of at most so many characters.
func line(text string, limit int) string {
	text = strings.Join(strings.Fields(printable(clip(text, 4*limit+utf8.UTFMax))), " ")
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// code is a text as a code span that can stand in a table.
func code(text string, limit int) string {
	text = strings.ReplaceAll(line(text, limit), "|", `\|`)
	if text == "" {
		return "(none)"
	}
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

// codeBlock is a text as an indented code block, which nothing in it can end, of at most so many
// bytes. It must stand between blank lines.
func codeBlock(text string, limit int) string {
	var out strings.Builder
	for line := range strings.Lines(printable(clip(text, limit))) {
		next := "    " + strings.TrimRight(line, "\n") + "\n"
		if out.Len()+len(next) > limit {
			next = "    " + clip(strings.TrimRight(line, "\n"), max(0, limit-out.Len()-5)) + "\n"
			out.WriteString(next)
			break
		}
		out.WriteString(next)
	}
	return out.String()
}
