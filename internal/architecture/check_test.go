package architecture

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Each check returns one line for each violation, in a fixed order.

// broken returns what packages do that rules forbid, by the shortest way that
// leads there.
func broken(g graph, rules []rule) (violations []string) {
	for _, r := range rules {
		for _, n := range g.ours() {
			if !matches(r.from, n.name) {
				continue
			}
			for _, never := range r.never {
				forbidden := func(dep string) bool { return r.forbids(n.name, never, dep) }
				if way := r.way(g, n, forbidden); way != nil {
					violations = append(violations, fmt.Sprintf("%s imports %s: %s", n.name, strings.Join(way, ", which imports "), r.why))
				}
			}
		}
	}
	return violations
}

func (r rule) way(g graph, from node, forbidden func(string) bool) []string {
	if !r.directly {
		return g.way(from.name, forbidden)
	}
	if i := slices.IndexFunc(from.imports, forbidden); i >= 0 {
		return from.imports[i : i+1]
	}
	return nil
}

func (r rule) forbids(from, never, dep string) bool {
	if matches(from+"/...", dep) || matchesAny(r.but, dep) {
		return false
	}
	if never == anythingButGoStd {
		return !isOurs(dep) && !isStandard(dep)
	}
	return matches(never, dep)
}

// outOfRoom returns who imports a dependency outside its room.
func outOfRoom(g graph, rooms []room) (violations []string) {
	for _, r := range rooms {
		for _, n := range g.ours() {
			if matchesAny(r.only, n.name) || matchesAny(rehearsals, n.name) {
				continue
			}
			for _, dep := range n.imports {
				if matches(r.dependency, dep) {
					violations = append(violations, fmt.Sprintf("%s imports %s, which only %s may: %s",
						n.name, dep, strings.Join(r.only, ", "), r.why))
				}
			}
		}
	}
	return violations
}

// wronglyLinked returns which programs contain what they must not.
func wronglyLinked(g graph, links []link) (violations []string) {
	for _, l := range links {
		for _, n := range g.ours() {
			if !n.program || matchesAny(l.only, n.name) || matchesAny(rehearsals, n.name) {
				continue
			}
			if way := g.way(n.name, func(dep string) bool { return matches(l.linked, dep) }); way != nil {
				violations = append(violations, fmt.Sprintf("%s imports %s, which only %s may contain: %s",
					n.name, strings.Join(way, ", which imports "), strings.Join(l.only, ", "), l.why))
			}
		}
	}
	return violations
}

// upward returns imports that do not go down, and packages without a floor.
func upward(g graph) (violations []string) {
	for _, n := range g.ours() {
		from, ok := floorOf(n.name)
		if !ok {
			violations = append(violations, fmt.Sprintf("%s has no floor: give it a line in floors_test.go", n.name))
			continue
		}
		for _, dep := range n.imports {
			if !isOurs(dep) {
				continue
			}
			if to, ok := floorOf(dep); ok && to >= from {
				violations = append(violations, fmt.Sprintf("%s (floor %d) imports %s (floor %d), which is not below it", n.name, from, dep, to))
			}
		}
	}
	return violations
}

// folderOf returns the folder that a package belongs to: "./mirror" for
// "./mirror/oci", but "./internal/cas" for that.
func folderOf(name string) string {
	parts := strings.Split(name, "/")
	depth := 2
	if len(parts) > 2 && (parts[1] == "internal" || parts[1] == "cmd") {
		depth = 3
	}
	return strings.Join(parts[:min(depth, len(parts))], "/")
}

// toAndFro returns pairs of folders that each reach the other, over however
// many folders in between.
func toAndFro(g graph) (violations []string) {
	uses := map[string]map[string]bool{}
	for _, n := range g.ours() {
		from := folderOf(n.name)
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		for _, dep := range n.imports {
			if to := folderOf(dep); isOurs(dep) && to != from {
				uses[from][to] = true
			}
		}
	}
	for _, a := range slices.Sorted(maps.Keys(uses)) {
		for b := range maps.Keys(uses) {
			if a < b && reaches(uses, a, b) && reaches(uses, b, a) {
				violations = append(violations, fmt.Sprintf("%s and %s use each other", a, b))
			}
		}
	}
	slices.Sort(violations)
	return violations
}

func reaches(uses map[string]map[string]bool, from, to string) bool {
	seen, ahead := map[string]bool{}, []string{from}
	for len(ahead) > 0 {
		at := ahead[0]
		ahead = ahead[1:]
		for next := range uses[at] {
			if next == to {
				return true
			}
			if !seen[next] {
				seen[next] = true
				ahead = append(ahead, next)
			}
		}
	}
	return false
}

// inDrawers returns packages that have a name that says nothing in their path.
func inDrawers(g graph) (violations []string) {
	for _, n := range g.ours() {
		for _, part := range strings.Split(n.name, "/") {
			if slices.Contains(drawers, part) {
				violations = append(violations, fmt.Sprintf("%s: name package %s after what it does", n.name, path.Base(n.name)))
			}
		}
	}
	return violations
}

// shippedKit returns who imports what is meant for tests only.
func shippedKit(g graph) (violations []string) {
	for _, n := range g.ours() {
		if matchesAny(forTests, n.name) || matchesAny(rehearsals, n.name) {
			continue
		}
		for _, dep := range n.imports {
			if matchesAny(forTests, dep) {
				violations = append(violations, fmt.Sprintf("%s imports %s, which is for tests only", n.name, dep))
			}
		}
	}
	return violations
}
