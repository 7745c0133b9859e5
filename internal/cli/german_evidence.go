package cli

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// GermanEvidence gives lines of evidence with their labels in German, and the
// values in line again: they were put in line for the English labels. Of a value
// only the few forms that numbers come in are translated; what else stands
// behind a label is data and stays as it is.
func GermanEvidence(lines []string) []string {
	german := make([]string, len(lines))
	values := make([]string, len(lines))
	width := 0
	for i, line := range lines {
		label, value, found := strings.Cut(line, ":")
		word, known := germanLabels()[label]
		if !found || !known {
			german[i] = line
			continue
		}
		german[i], values[i] = word+":", germanValue(strings.TrimSpace(value))
		width = max(width, utf8.RuneCountInString(german[i]))
	}
	for i, value := range values {
		if value != "" {
			german[i] += strings.Repeat(" ", 2+width-utf8.RuneCountInString(german[i])) + value
		}
	}
	return german
}

// germanValue translates a value that is a number of something.
func germanValue(value string) string {
	for _, form := range []struct{ english, german string }{
		{`^(\d+) of (\d+)$`, "$1 von $2"},
		{`^(\d+) bytes$`, "$1 Bytes"},
		{`^at most (\d+) bytes$`, "höchstens $1 Bytes"},
		{`^at least (\d+) bytes$`, "mindestens $1 Bytes"},
		{`^more than (\d+) bytes$`, "mehr als $1 Bytes"},
		{`^bytes (\d+) to (\d+)$`, "Bytes $1 bis $2"},
		{`^from byte (\d+) to the end$`, "von Byte $1 bis zum Ende"},
		{`^serial (\d+)$`, "Nummer $1"},
		{`^version (\d+)$`, "Version $1"},
		{`^version (\d+), (.*)$`, "Version $1, $2"},
		{`^(\d+) entries$`, "$1 Einträge"},
		{`^set ([0-9a-f]+)$`, "Sendung $1"},
		{`^key ([0-9a-f]+)$`, "Schlüssel $1"},
		{`^(.+) is named, but did not sign these bytes$`, "$1 ist genannt, hat diese Bytes aber nicht unterschrieben"},
		{`^none$`, "keine"},
		{`^the permission to read$`, "das Recht, zu lesen"},
		{`^the permission to receive$`, "das Recht, einzubringen"},
		{`^the permission to decide$`, "das Recht, zu entscheiden"},
		{`^the permission to release$`, "das Recht, zu laden"},
		{`^the permission to administer$`, "das Recht, zu verwalten"},
	} {
		if pattern := regexp.MustCompile(form.english); pattern.MatchString(value) {
			return pattern.ReplaceAllString(value, form.german)
		}
	}
	return value
}

// germanLabels are the labels of evidence that errors at a gate have.
func germanLabels() map[string]string {
	return map[string]string{
		"accepted": "angenommen", "anchor": "Anker", "answer": "Antwort", "applied": "angewendet", "audit log": "Prüfprotokoll", "mismatch": "Widerspruch", "database": "Datenbank", "document": "Dokument", "row": "Zeile", "set": "Sendung", "signed": "unterschrieben", "size": "Größe", "type": "Typ", "urls": "Adressen", "allowed": "erlaubt", "approvals": "Freigaben", "approved": "freigegeben", "asked": "gefragt", "at": "bei", "blocked": "im Weg",
		"broken": "gebrochen", "bundle": "Lieferung", "by": "von", "clock": "Uhr", "digest": "Prüfsumme", "expired": "abgelaufen", "file": "Datei",
		"finding": "Befund", "first": "erstens", "folder": "Ordner", "followed": "gefolgt", "for": "für", "found": "gefunden", "free": "frei",
		"given": "angegeben", "gone": "fehlt nun", "got": "erhalten", "have": "vorhanden", "here": "hier", "key": "Schlüssel", "known": "bekannt",
		"known time": "bekannte Zeit", "last": "zuletzt", "least": "mindestens", "limit": "Grenze", "looked for": "gesucht", "manifest": "Manifest",
		"copy": "Kopie", "lacking": "es fehlen", "missing volumes": "fehlende Teile", "volumes in all": "Teile insgesamt", "empty": "leer", "missing": "es fehlt", "most": "höchstens", "name": "Name", "needed": "nötig", "next": "als Nächstes", "now": "jetzt", "of": "von", "path": "Pfad",
		"process": "Prozess", "read": "gelesen", "reason": "Grund", "recipients": "Empfänger", "for others": "für andere", "refused": "abgelehnt", "roles": "Rollen", "root ends": "Anker endet", "said": "Antwort",
		"second": "zweitens", "seen": "gesehen", "submitter": "eingebracht von", "tried": "versucht", "unknown": "unbekannt", "url": "Adresse",
		"valid": "gültig", "wait": "Wartezeit", "want": "erwartet", "word": "Wort",
	}
}
