package packhof.rules.freshness_clock_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.freshness_clock

test_passes_clean if {
	count(freshness_clock.findings) == 0 with input as fixtures_test.clean
}

test_fires_at_the_end if {
	document := object.union(fixtures_test.clean, {"bundle": {"expires": "2026-12-30T12:00:00Z"}, "time": {"wall": "2026-12-30T12:00:00Z"}})
	found := freshness_clock.findings with input as document
	found == {{"artifact": "", "level": "review", "params": {"expires": "2026-12-30T12:00:00Z"}}}
}
