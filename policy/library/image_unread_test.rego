package packhof.rules.image_unread_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.image_unread

test_passes_clean if {
	count(image_unread.findings) == 0 with input as fixtures_test.clean
}

test_fires_unread if {
	found := image_unread.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.image, {"image": {"status": "unread", "reason": "not JSON", "configs": []}})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.image.digest, "review"]}
}

test_fires_one_config if {
	found := image_unread.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.image, {"image": {"configs": [object.union(fixtures_test.image_config, {"status": "unread", "reason": "not JSON"})]}})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.image.digest, "review"]}
}
