package config

import (
	"reflect"
	"slices"
	"strings"
)

// fieldAt finds the field at a path; it has no name where a list or map has the
// value, and no type where there is none.
func fieldAt(t reflect.Type, path []string) reflect.StructField {
	field := reflect.StructField{Type: pointedTo(t)}
	for _, part := range path {
		switch field.Type.Kind() {
		case reflect.Slice, reflect.Map:
			field = reflect.StructField{Type: field.Type.Elem()}
		case reflect.Struct:
			field = fieldNamed(field.Type, part)
		default:
			return reflect.StructField{}
		}
		if field.Type == nil {
			return field
		}
		field.Type = pointedTo(field.Type)
	}
	return field
}

func pointedTo(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func fieldNamed(t reflect.Type, name string) reflect.StructField {
	for field := range t.Fields() {
		if nameOf(field) == name {
			return field
		}
	}
	return reflect.StructField{}
}

func nameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// fieldNames lists the keys that the type knows at the path.
func fieldNames(t reflect.Type, path []string) (names []string) {
	t = fieldAt(t, path).Type
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for field := range t.Fields() {
		names = append(names, nameOf(field))
	}
	return names
}

// maxMisspelt is the length, in bytes, up to which a name may be another one
// misspelt: comparing takes time with the length.
const maxMisspelt = 60

// Nearest finds a name that differs by little; "" if none does.
func Nearest(name string, names []string) string {
	if len(name) > maxMisspelt {
		return ""
	}
	best, distance := "", 1+max(1, len(name)/3)
	for _, candidate := range names {
		if d := editDistance(strings.ToLower(name), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, changes and swaps of neighbours.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = slices.Min([]int{rows[i-1][j] + 1, rows[i][j-1] + 1, rows[i-1][j-1] + cost})
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
