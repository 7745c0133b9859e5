package packhof.rules.model_code_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.model_code

test_passes_clean if {
	count(model_code.findings) == 0 with input as fixtures_test.clean
}

test_fires_script if {
	found := model_code.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([fixtures_test.file_with("run.sh", "script", "script.content")])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.model.digest, "review"]}
}

test_fires_remote_code if {
	found := model_code.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([fixtures_test.file_with("config.json", "json", "model.remote-code")])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.model.digest, "review"]}
}
