package packhof.rules.name_mismatch_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.name_mismatch

test_passes_clean if {
	count(name_mismatch.findings) == 0 with input as fixtures_test.clean
}

test_fires_model if {
	found := name_mismatch.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([object.union(fixtures_test.file("a.json", "elf"), {"mismatch": true})])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.model.digest, "review"]}
}

test_fires_files if {
	found := name_mismatch.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.files, {"inspection": fixtures_test.inspected([object.union(fixtures_test.file("a.json", "elf"), {"mismatch": true})])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.files.digest, "warn"]}
}
