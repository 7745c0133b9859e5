package packhof.rules.licence_denied_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.licence_denied

test_passes_clean if {
	count(licence_denied.findings) == 0 with input as fixtures_test.clean
		with data.packhof.config.denied_licences as ["AGPL-3.0", "BUSL-1.1"]
}

test_passes_not_denied if {
	every expression in [
		"GPL-3.0-only",
		"LGPL-3.0-or-later",
		"MIT OR AGPL-3.0-only",
		"AGPL-3.0-only or Apache-2.0",
		"MIT AND (GPL-2.0-only OR BSD-3-Clause)",
		"XAGPL-3.0",
		"",
	] {
		not denied(expression)
	}
}

test_fires_denied if {
	every expression in [
		"AGPL-3.0",
		"agpl-3.0-only",
		"AGPL-3.0-or-later",
		"AGPL-3.0+",
		"MIT AND AGPL-3.0-only",
		"(MIT OR AGPL-3.0-only)",
		"(MIT AND (AGPL-3.0-only))",
		"AGPL-3.0-only WITH some-exception",
		"AGPL-3.0-only OR BUSL-1.1",
		"MIT AND AGPL-3.0-only OR BUSL-1.1",
	] {
		denied(expression)
	}
}

test_fires_each_once if {
	artifact := object.union(fixtures_test.image, {"licences": ["AGPL-3.0-only", "BUSL-1.1", "MIT"]})
	found := licence_denied.findings with input as fixtures_test.with_artifacts([artifact])
		with data.packhof.config.denied_licences as ["AGPL-3.0", "BUSL-1.1"]
	found == {{
		"artifact": artifact.digest,
		"level": "deny",
		"params": {"licences": "AGPL-3.0-only, BUSL-1.1"},
	}}
}

denied(expression) if {
	artifact := object.union(fixtures_test.image, {"licences": [expression]})
	found := licence_denied.findings with input as fixtures_test.with_artifacts([artifact])
		with data.packhof.config.denied_licences as ["AGPL-3.0", "BUSL-1.1"]
	count(found) == 1
}
