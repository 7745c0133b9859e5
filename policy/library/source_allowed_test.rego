package packhof.rules.source_allowed_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.source_allowed

test_passes_clean if {
	count(source_allowed.findings) == 0 with input as fixtures_test.clean
		with data.packhof.config.allowed_sources as ["*"]
}

# Each of these lets the source in.
test_passes_allowed if {
	every case in [
		["registry.example/team/app:1.2", "registry.example"],
		["registry.example/team/app:1.2", "*.example"],
		["registry.example/team/app:1.2", "registry.example/*"],
		["registry.example/team/app:1.2", "registry.example/team/*"],
		["registry.example/team/app:1.2", "registry.example/team/app"],
		["registry.example/team/app@sha256:00", "registry.example/team/app"],
		["https://registry.example/team/app", "registry.example/team/*"],
	] {
		not refused(case[0], case[1])
	}
}

test_passes_local if {
	origin := {"host": "", "from": "/data/models", "transport": "local", "verified": "first-resolve", "pinned": true}
	artifact := object.union(fixtures_test.files, {"origin": origin})
	count(source_allowed.findings) == 0 with input as fixtures_test.with_artifacts([artifact])
		with data.packhof.config.allowed_sources as ["local"]
}

# None of these does.
test_fires_not_allowed if {
	every case in [
		["registry.example/team/app:1.2", "other.example"],
		["registry.example/team/app:1.2", "local"],
		["registry.example/team/app:1.2", "registry*"],
		["registry.example/team/app:1.2", "*.registry.example"],
		["registry.example/team/app:1.2", "*example"],
		["registry.example/team/app:1.2", "registry.example/te*"],
		["registry.example/team/app:1.2", "registry.example/tea"],
		["registry.example/team/app:1.2", "registry.example/other/*"],
		["registry.example/team/app:1.2", "registry.example/team/app:1.2/*"],
		["https://registry.example/team/../secret/app", "registry.example/team/*"],
	] {
		refused(case[0], case[1])
	}
}

test_fires_empty_list if {
	found := source_allowed.findings with input as fixtures_test.with_artifacts([fixtures_test.image])
		with data.packhof.config.allowed_sources as []
	{f.level | some f in found} == {"deny"}
}

refused(from, pattern) if {
	artifact := object.union(fixtures_test.image, {"origin": {"from": from}})
	found := source_allowed.findings with input as fixtures_test.with_artifacts([artifact])
		with data.packhof.config.allowed_sources as [pattern]
	count(found) == 1
}
