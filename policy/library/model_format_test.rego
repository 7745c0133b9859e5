package packhof.rules.model_format_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.model_format

test_passes_clean if {
	count(model_format.findings) == 0 with input as fixtures_test.clean
		with data.packhof.config.model_formats as ["safetensors", "json"]
}

# A finding of its own says so.
test_passes_pickle if {
	artifact := object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([fixtures_test.file("a", "pickle")])})
	count(model_format.findings) == 0 with input as fixtures_test.with_artifacts([artifact])
		with data.packhof.config.model_formats as []
}

test_fires_unknown if {
	artifact := object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([fixtures_test.file("a.bin", "unknown")])})
	found := model_format.findings with input as fixtures_test.with_artifacts([artifact])
		with data.packhof.config.model_formats as ["safetensors"]
	{[f.level, f.params.files] | some f in found} == {["review", "a.bin (unknown)"]}
}
