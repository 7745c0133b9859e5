package packhof.rules.licence_unknown_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.licence_unknown

test_passes_clean if {
	count(licence_unknown.findings) == 0 with input as fixtures_test.clean
}

# A file set has no packages, so nothing can be said about their licences.
test_passes_without_packages if {
	count(licence_unknown.findings) == 0 with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"licences": []})])
}

test_fires_some if {
	found := licence_unknown.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"sbom": [object.union(fixtures_test.sbom(fixtures_test.model.digest), {"unlicensed": 3})]})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.model.digest, "info"]}
}
