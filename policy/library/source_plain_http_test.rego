package packhof.rules.source_plain_http_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.source_plain_http

test_passes_clean if {
	count(source_plain_http.findings) == 0 with input as fixtures_test.clean
}

test_fires_plain if {
	found := source_plain_http.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.files, {"origin": {"transport": "plain"}})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.files.digest, "deny"]}
}
