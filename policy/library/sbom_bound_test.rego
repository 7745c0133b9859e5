package packhof.rules.sbom_bound_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.sbom_bound

test_passes_clean if {
	count(sbom_bound.findings) == 0 with input as fixtures_test.clean
}

test_fires_unbound if {
	found := sbom_bound.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.image, {"sbom": [object.union(fixtures_test.sbom(fixtures_test.image.digest), {"bound": false, "reason": "other subject"})]})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.image.digest, "deny"]}
}

test_passes_absent if {
	artifact := object.union(fixtures_test.model, {"sbom": [object.union(fixtures_test.sbom(fixtures_test.model.digest), {"status": "absent", "bound": false, "format": "", "reason": "no scanner"})]})
	count(sbom_bound.findings) == 0 with input as fixtures_test.with_artifacts([artifact])
}
