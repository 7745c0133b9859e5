# METADATA
# title: Files play no tricks
# custom:
#   kinds: [model, dataset, files, packages]
#   title_de: "Dateien arbeiten nicht mit Tricks"
#   message: "files that contradict themselves, hide something or reach outside: {count} ({files})"
#   message_de: "Dateien, die sich widersprechen, etwas verbergen oder nach außen greifen: {count} ({files})"
#   remedy: "ask the supplier for files that were made without tricks"
#   remedy_de: "Beim Lieferanten einwandfrei erzeugte Dateien anfordern"
package packhof.rules.content_suspicious

checked contains a.digest if {
	some a in input.artifacts
	a.kind in {"model", "dataset", "files", "packages"}
}

findings contains {
	"artifact": a.digest,
	"level": "review",
	"params": {"count": count(found), "files": substring(concat(", ", array.slice(found, 0, 5)), 0, 1000)},
} if {
	some a in input.artifacts
	a.kind in {"model", "dataset", "files", "packages"}
	found := sort({text |
		some f in a.inspection.files
		some finding in f.findings
		suspicious(finding.code)
		text := sprintf("%s (%s)", [f.path, finding.code])
	})
	count(found) > 0
}

suspicious(code) if startswith(code, "zip.")

suspicious(code) if startswith(code, "archive.")

suspicious(code) if code in {
	"content.short", "lfs.stub", "onnx.custom-domain",
	"onnx.external-path", "template.suspicious",
}
