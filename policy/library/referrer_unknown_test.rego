package packhof.rules.referrer_unknown_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.referrer_unknown

test_passes_clean if {
	count(referrer_unknown.findings) == 0 with input as fixtures_test.clean
}

test_passes_known if {
	every kind in ["sbom", "signature", "attestation"] {
		count(found([fixtures_test.referrer(kind, [fixtures_test.file("a", "json")])])) == 0
	}
}

test_fires_other if {
	one := fixtures_test.referrer("other", [fixtures_test.file("a", "json")])
	typeless := object.union(one, {"untrusted": {"artifactType": ""}})
	found([one, typeless]) == {{
		"artifact": fixtures_test.image.digest,
		"level": "review",
		"params": {"count": 2, "types": "?, application/vnd.example"},
	}}
}

found(referrers) := findings if {
	artifact := object.union(fixtures_test.image, {"referrers": referrers})
	findings := referrer_unknown.findings with input as fixtures_test.with_artifacts([artifact])
}
