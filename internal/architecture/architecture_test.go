package architecture

import (
	"slices"
	"strings"
	"testing"
)

func report(t *testing.T, violations []string) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

// announce lists the packages that a rule is about and that do not exist yet:
// the rule bites as soon as they do.
func announce(t *testing.T, g graph, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		exists := slices.ContainsFunc(g.ours(), func(n node) bool { return matches(pattern, n.name) })
		if isOurs(pattern) && !exists {
			t.Logf("waiting for %s", pattern)
		}
	}
}

func announceRules(t *testing.T, g graph, rules []rule) {
	t.Helper()
	for _, r := range rules {
		announce(t, g, r.from)
	}
}

// The import graph has its gap where the plant has its gap.
func TestShoresDoNotMeet(t *testing.T) {
	g := loaded(t)
	announceRules(t, g, shores)
	report(t, broken(g, shores))
}

func TestNeighboursKeepTheirDistance(t *testing.T) {
	g := loaded(t)
	announceRules(t, g, neighbours)
	report(t, broken(g, neighbours))
}

func TestGateLinksNoFetcher(t *testing.T) {
	g := loaded(t)
	announceRules(t, g, gateLinks)
	report(t, broken(g, gateLinks))
}

func TestHeavyDependenciesHaveOneRoom(t *testing.T) {
	g := loaded(t)
	for _, r := range rooms {
		announce(t, g, r.only...)
	}
	report(t, outOfRoom(g, rooms))
}

func TestLinkedBy(t *testing.T) {
	g := loaded(t)
	for _, l := range links {
		announce(t, g, l.only...)
	}
	report(t, wronglyLinked(g, links))
}

func TestNoArrowRunsBackUp(t *testing.T) {
	g := loaded(t)
	report(t, upward(g))
	report(t, toAndFro(g))
}

func TestNoDrawers(t *testing.T) {
	report(t, inDrawers(loaded(t)))
}

func TestTestkitStaysInTests(t *testing.T) {
	report(t, shippedKit(loaded(t)))
}

// A rule about a package that nobody has and nobody plans protects nothing.
func TestRulesNameKnownPackages(t *testing.T) {
	for _, pattern := range unknownPatterns(allPatterns(), requiredModules(t)) {
		t.Errorf("%s fits no package in floors_test.go and no module in go.mod or plannedModules", pattern)
	}
}

// allPatterns returns every pattern that a rule mentions.
func allPatterns() []string {
	patterns := slices.Concat(rehearsals, forTests)
	for _, r := range slices.Concat(shores, neighbours, gateLinks) {
		patterns = slices.Concat(patterns, []string{r.from}, r.never, r.but)
	}
	for _, r := range rooms {
		patterns = slices.Concat(patterns, []string{r.dependency}, r.only)
	}
	for _, l := range links {
		patterns = slices.Concat(patterns, []string{l.linked}, l.only)
	}
	slices.Sort(patterns)
	return slices.Compact(patterns)
}

func unknownPatterns(patterns []string, modules map[string]string) (unknown []string) {
	for _, pattern := range patterns {
		ok := pattern == anythingButGoStd || isStandard(pattern) || slices.Contains(plannedModules, pattern)
		if isOurs(pattern) {
			ok = isKnownPattern(pattern)
		} else if !ok {
			above := strings.TrimSuffix(pattern, "/...")
			for path := range modules {
				ok = ok || path == above || strings.HasPrefix(path, above+"/")
			}
		}
		if !ok {
			unknown = append(unknown, pattern)
		}
	}
	return unknown
}
