package packhof.rules.image_tag_latest_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.image_tag_latest

test_passes_clean if {
	count(image_tag_latest.findings) == 0 with input as fixtures_test.clean
		with data.packhof.config.mutable_tags as ["latest"]
}

test_fires_latest if {
	artifact := object.union(fixtures_test.image, {"version": "latest"})
	found := image_tag_latest.findings with input as fixtures_test.with_artifacts([artifact])
		with data.packhof.config.mutable_tags as ["latest"]
	{f.level | some f in found} == {"warn"}
}
