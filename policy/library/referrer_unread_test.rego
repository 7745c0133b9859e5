package packhof.rules.referrer_unread_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.referrer_unread

test_passes_clean if {
	count(referrer_unread.findings) == 0 with input as fixtures_test.clean
}

test_passes_preview if {
	count(referrer_unread.findings) == 0 with input as object.union(with_referrer("other", pending), {"preview": true})
}

# Rules about SBOMs say so.
test_passes_sbom if {
	count(referrer_unread.findings) == 0 with input as with_referrer("sbom", pending)
}

test_fires_not_inspected if {
	every kind in ["signature", "attestation", "other"] {
		found := referrer_unread.findings with input as with_referrer(kind, pending)
		found == {{
			"artifact": fixtures_test.image.digest,
			"level": "review",
			"params": {"count": 1, "referrers": "e1e1e1e1e1e1"},
		}}
	}
}

test_fires_unreadable if {
	file := object.union(fixtures_test.file("a.7z", "7z"), {"unreadable": true, "reason": "no reader"})
	found := referrer_unread.findings with input as with_referrer("signature", fixtures_test.inspected([file]))
	{f.level | some f in found} == {"review"}
}

pending := {"status": "pending", "reason": "not yet", "files": []}

with_referrer(kind, inspection) := fixtures_test.with_artifacts([artifact]) if {
	referrer := object.union(fixtures_test.referrer(kind, []), {"inspection": inspection})
	artifact := object.union(fixtures_test.image, {"referrers": [referrer]})
}
