package cli

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Print writes a command's result to stdout: table as people read it, or
// document as JSON or YAML. A document carries apiVersion and kind. What could
// act on a terminal is escaped in it, and is the same to whoever parses it.
func (a *App) Print(kind string, document any, table func(w io.Writer)) error {
	if a.Format == "table" {
		var text bytes.Buffer
		table(&text)
		_, err := a.Stdout.Write(text.Bytes())
		return err
	}
	b, err := json.Marshal(document, json.Deterministic(true))
	if err != nil {
		return err
	}
	b, err = withKind(kind, b)
	if err != nil {
		return err
	}
	if a.Format == "yaml" {
		if b, err = asYAML(b); err != nil {
			return err
		}
	} else {
		b = escaped(b)
	}
	_, err = a.Stdout.Write(b)
	return err
}

// withKind puts apiVersion and kind in front of the members of an object.
func withKind(kind string, object []byte) ([]byte, error) {
	body := jsontext.Value(object)
	head := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, APIVersion, kind)
	if string(body) == "{}" {
		head = head[:len(head)-1]
	}
	whole := jsontext.Value(append([]byte(head), body[1:]...))
	if err := whole.Indent(jsontext.WithIndent("  "), jsontext.AllowDuplicateNames(false)); err != nil {
		return nil, fmt.Errorf("%s is no JSON object: %w", kind, err)
	}
	return append(whole, '\n'), nil
}

// Table writes rows in columns, two blanks apart, without blanks at the end of
// a line. An empty row gives an empty line.
func Table(w io.Writer, rows [][]string) {
	widths := map[int]int{}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(printable(cell)))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			cell = printable(cell)
			line.WriteString(cell + strings.Repeat(" ", 2+widths[i]-utf8.RuneCountInString(cell)))
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// Bytes writes a size for people: 1.4 GiB.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if value /= 1024; value < 1024 {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// Count writes a number of things: "1 gate", "2 gates".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Shorten cuts text for a column.
func Shorten(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
