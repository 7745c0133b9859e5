package packhof.rules.freshness_skew_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.freshness_skew

test_passes_clean if {
	count(freshness_skew.findings) == 0 with input as fixtures_test.clean
}

test_fires_ahead if {
	document := object.union(fixtures_test.clean, {"bundle": {"created": "2026-12-30T12:00:00Z"}, "time": {"wall": "2026-12-30T11:00:00Z"}})
	found := freshness_skew.findings with input as document
	found == {{"artifact": "", "level": "warn", "params": {"created": "2026-12-30T12:00:00Z"}}}
}
