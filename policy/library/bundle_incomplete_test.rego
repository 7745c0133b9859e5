package packhof.rules.bundle_incomplete_test

import data.packhof.rules.bundle_incomplete
import data.packhof.rules.fixtures_test

test_passes_clean if {
	count(bundle_incomplete.findings) == 0 with input as fixtures_test.clean
}

test_fires_omitted if {
	document := object.union(fixtures_test.clean, {"bundle": {"omitted": [{"name": "app", "untrusted": {"reason": "unreachable"}}]}})
	found := bundle_incomplete.findings with input as document
	found == {{"artifact": "", "level": "warn", "params": {"count": 1, "names": "app"}}}
}
