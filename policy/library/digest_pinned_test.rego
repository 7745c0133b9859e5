package packhof.rules.digest_pinned_test

import data.packhof.rules.digest_pinned
import data.packhof.rules.fixtures_test

test_passes_clean if {
	count(digest_pinned.findings) == 0 with input as fixtures_test.clean
}

test_fires_unpinned if {
	found := digest_pinned.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.image, {"origin": {"pinned": false}})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.image.digest, "deny"]}
}
