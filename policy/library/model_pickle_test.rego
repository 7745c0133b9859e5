package packhof.rules.model_pickle_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.model_pickle

test_passes_clean if {
	count(model_pickle.findings) == 0 with input as fixtures_test.clean
}

test_fires_bare if {
	found := model_pickle.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([fixtures_test.file("model.safetensors", "pickle")])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.model.digest, "deny"]}
}

test_fires_torch if {
	found := model_pickle.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([fixtures_test.file("pytorch_model.bin", "torch-zip")])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.model.digest, "deny"]}
}

test_fires_within if {
	found := model_pickle.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([fixtures_test.file_with("a.npy", "npy", "pickle.content")])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.model.digest, "deny"]}
}

test_passes_named_like_one if {
	artifact := object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([fixtures_test.file("model.pkl", "json")])})
	count(model_pickle.findings) == 0 with input as fixtures_test.with_artifacts([artifact])
}
