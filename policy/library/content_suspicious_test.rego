package packhof.rules.content_suspicious_test

import data.packhof.rules.content_suspicious
import data.packhof.rules.fixtures_test

test_passes_clean if {
	count(content_suspicious.findings) == 0 with input as fixtures_test.clean
}

test_fires_zip if {
	found := content_suspicious.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.files, {"inspection": fixtures_test.inspected([fixtures_test.file_with("a.zip", "zip", "zip.mismatch")])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.files.digest, "review"]}
}

test_fires_stub if {
	found := content_suspicious.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([fixtures_test.file_with("a.bin", "git-lfs-stub", "lfs.stub")])})])
	{[f.artifact, f.level] | some f in found} == {[fixtures_test.model.digest, "review"]}
}

test_fires_each_code if {
	every code in [
		"archive.path", "content.short", "onnx.custom-domain",
		"onnx.external-path", "template.suspicious", "zip.hidden",
	] {
		found := content_suspicious.findings with input as fixtures_test.with_artifacts([object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([fixtures_test.file_with("a", "onnx", code)])})])
		{f.params.files | some f in found} == {sprintf("a (%s)", [code])}
	}
}

test_passes_harmless_finding if {
	artifact := object.union(fixtures_test.files, {"inspection": fixtures_test.inspected([fixtures_test.file_with("run.sh", "script", "script.content")])})
	count(content_suspicious.findings) == 0 with input as fixtures_test.with_artifacts([artifact])
}
