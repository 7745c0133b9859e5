package packhof.rules.referrer_code_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.referrer_code

test_passes_clean if {
	count(referrer_code.findings) == 0 with input as fixtures_test.clean
}

test_passes_harmless if {
	count(found("other", fixtures_test.file_with("a", "zip", "zip.mismatch"))) == 0
}

# The files of the artifact itself have rules of their own.
test_passes_own_files if {
	artifact := object.union(fixtures_test.model, {"inspection": fixtures_test.inspected([fixtures_test.file("a", "pickle")])})
	count(referrer_code.findings) == 0 with input as fixtures_test.with_artifacts([artifact])
}

test_fires_bare if {
	found("other", fixtures_test.file("a.bin", "pickle")) == {{
		"artifact": fixtures_test.image.digest,
		"level": "deny",
		"params": {"count": 1, "files": "e1e1e1e1e1e1/a.bin"},
	}}
}

test_fires_whatever_it_is_called if {
	every kind in ["sbom", "signature", "attestation", "other"] {
		{f.level | some f in found(kind, fixtures_test.file("a", "torch-zip"))} == {"deny"}
	}
}

test_fires_by_finding if {
	every code in ["pickle.content", "executable.content", "keras.lambda", "script.content", "torch.code"] {
		{f.level | some f in found("signature", fixtures_test.file_with("a", "zip", code))} == {"deny"}
	}
}

found(kind, file) := findings if {
	artifact := object.union(fixtures_test.image, {"referrers": [fixtures_test.referrer(kind, [file])]})
	findings := referrer_code.findings with input as fixtures_test.with_artifacts([artifact])
}
