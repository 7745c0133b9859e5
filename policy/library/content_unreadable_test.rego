package packhof.rules.content_unreadable_test

import data.packhof.rules.content_unreadable
import data.packhof.rules.fixtures_test

test_passes_clean if {
	count(content_unreadable.findings) == 0 with input as fixtures_test.clean
}

test_fires_unreadable if {
	found := content_unreadable.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.files, {"inspection": fixtures_test.inspected([object.union(fixtures_test.file("a.7z", "7z"), {"unreadable": true, "reason": "no reader"})])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.files.digest, "review"]}
}
