package packhof.rules.digest_pinned_test

import data.packhof.rules.digest_pinned
import data.packhof.rules.fixtures_test

test_passes_clean if {
	count(digest_pinned.findings) == 0 with input as fixtures_test.clean
		with data.packhof.config.accepted_pins as ["digest"]
}

test_passes_first_resolve if {
	count(found({"verified": "first-resolve"}, ["digest", "first-resolve"])) == 0
}

test_fires_strict if {
	found({"verified": "first-resolve"}, ["digest"]) == {{
		"artifact": fixtures_test.image.digest,
		"level": "deny",
		"params": {
			"source": "registry.example/team/app:1.2",
			"pin": "first-resolve",
			"accepted": "digest",
		},
	}}
}

test_fires_unpinned if {
	{[f.level, f.params.pin] | some f in found({"pinned": false}, ["digest", "first-resolve"])} == {["deny", "-"]}
}

test_fires_nothing_accepted if {
	{f.level | some f in found({}, [])} == {"deny"}
}

found(origin, pins) := findings if {
	artifact := object.union(fixtures_test.image, {"origin": origin})
	findings := digest_pinned.findings with input as fixtures_test.with_artifacts([artifact])
		with data.packhof.config.accepted_pins as pins
}
