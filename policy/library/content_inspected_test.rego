package packhof.rules.content_inspected_test

import data.packhof.rules.content_inspected
import data.packhof.rules.fixtures_test

test_passes_clean if {
	count(content_inspected.findings) == 0 with input as fixtures_test.clean
}

test_fires_model if {
	found := content_inspected.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"inspection": {"status": "failed", "reason": "crashed", "files": []}})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.model.digest, "deny"]}
}

test_fires_files if {
	found := content_inspected.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.files, {"inspection": {"status": "pending", "reason": "crashed", "files": []}})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.files.digest, "review"]}
}

test_passes_preview if {
	artifact := object.union(fixtures_test.model, {"inspection": {"status": "pending", "reason": "crashed", "files": []}})
	document := object.union(fixtures_test.with_artifacts([artifact]), {"preview": true})
	count(content_inspected.findings) == 0 with input as document
}
