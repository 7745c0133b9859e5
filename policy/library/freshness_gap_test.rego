package packhof.rules.freshness_gap_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.freshness_gap

test_passes_clean if {
	count(freshness_gap.findings) == 0 with input as fixtures_test.clean
}

test_fires_gap if {
	document := object.union(fixtures_test.clean, {"bundle": {"gap": [40, 41]}})
	found := freshness_gap.findings with input as document
	found == {{"artifact": "", "level": "review", "params": {"count": 2, "serials": "40, 41"}}}
}
