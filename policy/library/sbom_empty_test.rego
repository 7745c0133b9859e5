package packhof.rules.sbom_empty_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.sbom_empty

test_passes_clean if {
	count(sbom_empty.findings) == 0 with input as fixtures_test.clean
}

# That there is none is another finding.
test_passes_absent if {
	artifact := object.union(fixtures_test.image, {"sbom": [object.union(empty, {"status": "absent", "bound": false, "format": "", "reason": "no scanner"})]})
	count(sbom_empty.findings) == 0 with input as fixtures_test.with_artifacts([artifact])
}

test_fires_image if {
	artifact := object.union(fixtures_test.image, {"sbom": [empty, fixtures_test.sbom(fixtures_test.image.digest)]})
	found := sbom_empty.findings with input as fixtures_test.with_artifacts([artifact])
	found == {{"artifact": artifact.digest, "level": "review", "params": {"empty": 1, "subjects": 2}}}
}

test_fires_files if {
	artifact := object.union(fixtures_test.files, {"sbom": [empty]})
	found := sbom_empty.findings with input as fixtures_test.with_artifacts([artifact])
	{f.level | some f in found} == {"info"}
}

empty := object.union(fixtures_test.sbom(fixtures_test.image.digest), {"components": 0, "packages": 0})
