package web

import (
	"embed"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

//go:embed lang/*.json
var languageFiles embed.FS

// languages of the screens; the first one is for who asks for none of them.
func languages() []string { return []string{"de", "en"} }

// Words has every text of the gate in one language, for screens and terminals,
// and its ways to write numbers and dates.
type Words struct {
	code  string
	texts map[string]string // of the screens, by key
	said  map[string]string // of sentences that are English where they are made, by these; nil for English
	zone  *time.Location
	now   func() time.Time
}

// LoadWords gives the words of one of the languages "de" and "en".
func LoadWords(code string, clock func() time.Time) (*Words, error) {
	l := &Words{code: code, zone: clock().Location(), now: clock}
	if err := loadTexts(code+".json", &l.texts); err != nil {
		return nil, err
	}
	if code == "en" {
		return l, nil
	}
	return l, loadTexts("said."+code+".json", &l.said)
}

func loadTexts(name string, into *map[string]string) error {
	b, err := languageFiles.ReadFile("lang/" + name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("lang/%s: %w", name, err)
	}
	return nil
}

// text gives the text of a key, its placeholders filled from pairs of a name
// and a value: text, which is made visible, or a number.
func (l *Words) text(key string, pairs ...any) (string, error) {
	text, ok := l.texts[key]
	if !ok {
		return "", fmt.Errorf("no text %q in %s", key, l.code)
	}
	filled, err := l.fill(text, pairs)
	if err != nil {
		return "", fmt.Errorf("text %q: %w", key, err)
	}
	return filled, nil
}

func (l *Words) fill(text string, pairs []any) (string, error) {
	if len(pairs)%2 != 0 {
		return "", errors.New("a placeholder without a value")
	}
	var replace []string
	for i := 0; i < len(pairs); i += 2 {
		value, err := l.value(pairs[i+1])
		if err != nil {
			return "", err
		}
		replace = append(replace, "{"+fmt.Sprint(pairs[i])+"}", value)
	}
	return strings.NewReplacer(replace...).Replace(text), nil
}

func (l *Words) value(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return visible(v), nil
	case int:
		return l.number(int64(v)), nil
	case int64:
		return l.number(v), nil
	}
	return "", fmt.Errorf("%T is no value for a placeholder", v)
}

// count gives the text for one or for several: of key.one or key.other.
func (l *Words) count(key string, n any, pairs ...any) (string, error) {
	ending := ".other"
	if n == 1 || n == int64(1) {
		ending = ".one"
	}
	return l.text(key+ending, append([]any{"n", n}, pairs...)...)
}

// word gives the word for a value of a fixed set, such as a state. One that is
// in no set is shown as it is.
func (l *Words) word(set string, value any) string {
	raw := fmt.Sprint(value)
	if text, ok := l.texts[wordKey(set, raw)]; ok {
		return text
	}
	return visible(raw)
}

// list joins names as people write them: "a, b and c". They are made visible
// when a text takes them.
func (l *Words) list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + l.pick(" und ", " and ") + names[last]
}

func wordKey(set, value string) string { return set + "." + strings.ReplaceAll(value, " ", "-") }

// number groups digits by three.
func (l *Words) number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "−", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append(groups, digits[len(digits)-3:])
		digits = digits[:len(digits)-3]
	}
	groups = append(groups, digits)
	slices.Reverse(groups)
	return sign + strings.Join(groups, l.pick(".", ","))
}

// size writes bytes in binary units with one decimal.
func (l *Words) size(n int64) string {
	if n < 1024 {
		return l.number(n) + " B"
	}
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	tenths := int64(value*10 + 0.5)
	return l.number(tenths/10) + l.pick(",", ".") + strconv.FormatInt(tenths%10, 10) + " " + units[unit]
}

// date writes a moment in the time of the plant.
func (l *Words) date(t time.Time) string {
	return t.In(l.zone).Format(l.pick("02.01.2006, 15:04", "2 Jan 2006, 15:04"))
}

// age says how long ago something was.
func (l *Words) age(t time.Time) (string, error) {
	d := l.now().Sub(t)
	switch {
	case d < time.Minute:
		return l.text("age.now")
	case d < time.Hour:
		return l.count("age.minutes", int(d/time.Minute))
	case d < 48*time.Hour:
		return l.count("age.hours", int(d/time.Hour))
	}
	return l.count("age.days", int(d/(24*time.Hour)))
}

func (l *Words) pick(german, english string) string {
	if l.code == "de" {
		return german
	}
	return english
}

const languageCookie = "packhof-language"

// languageOf is what somebody chose, or what the browser asks for.
func languageOf(r *http.Request) string {
	if cookie, err := r.Cookie(languageCookie); err == nil && slices.Contains(languages(), cookie.Value) {
		return cookie.Value
	}
	return acceptedLanguage(r.Header.Get("Accept-Language"))
}

// acceptedLanguage picks the language with the highest weight in the header,
// the first one of equals.
func acceptedLanguage(header string) string {
	best, weight := languages()[0], 0.0
	for item := range strings.SplitSeq(header, ",") {
		tag, parameters, _ := strings.Cut(item, ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		q := 1.0
		if text, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q="); ok {
			var err error
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		if slices.Contains(languages(), primary) && q > weight && q <= 1 {
			best, weight = primary, q
		}
	}
	return best
}

// chooseLanguage remembers a choice, and goes back to where it was made.
func (s *server) chooseLanguage(c echo.Context) error {
	form, err := readForm(c)
	if err != nil {
		return err
	}
	if lang := form.Get("lang"); slices.Contains(languages(), lang) {
		const year = 365 * 24 * 60 * 60
		http.SetCookie(c.Response(), &http.Cookie{
			Name: languageCookie, Value: lang, Path: "/", MaxAge: year,
			HttpOnly: true, Secure: s.options.Secure, SameSite: http.SameSiteStrictMode,
		})
	}
	return c.Redirect(http.StatusSeeOther, localPath(form.Get("to")))
}
