package packhof.rules.file_pickle_test

import data.packhof.rules.file_pickle
import data.packhof.rules.fixtures_test

test_passes_clean if {
	count(file_pickle.findings) == 0 with input as fixtures_test.clean
}

test_fires_bare if {
	found := file_pickle.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.files, {"inspection": fixtures_test.inspected([fixtures_test.file("a.bin", "pickle")])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.files.digest, "review"]}
}

test_fires_within if {
	found := file_pickle.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.files, {"inspection": fixtures_test.inspected([fixtures_test.file_with("a.npy", "npy", "pickle.content")])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.files.digest, "review"]}
}
