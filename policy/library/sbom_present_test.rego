package packhof.rules.sbom_present_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.sbom_present

test_passes_clean if {
	count(sbom_present.findings) == 0 with input as fixtures_test.clean
}

test_fires_image if {
	found := sbom_present.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.image, {"sbom": [object.union(fixtures_test.sbom(fixtures_test.image.digest), {"status": "absent", "bound": false, "format": "", "reason": "no scanner"})]})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.image.digest, "deny"]}
}

test_fires_failed if {
	found := sbom_present.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.image, {"sbom": [object.union(fixtures_test.sbom(fixtures_test.image.digest), {"status": "failed", "bound": false, "format": "", "reason": "no scanner"})]})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.image.digest, "deny"]}
}

test_fires_model if {
	found := sbom_present.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"sbom": [object.union(fixtures_test.sbom(fixtures_test.model.digest), {"status": "absent", "bound": false, "format": "", "reason": "no scanner"})]})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.model.digest, "review"]}
}

test_passes_unbound if {
	artifact := object.union(fixtures_test.image, {"sbom": [object.union(fixtures_test.sbom(fixtures_test.image.digest), {"bound": false, "reason": "other subject"})]})
	count(sbom_present.findings) == 0 with input as fixtures_test.with_artifacts([artifact])
}
