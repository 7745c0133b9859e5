# METADATA
# title: Files that run code when loaded are known
# custom:
#   kinds: [dataset, files, packages]
#   title_de: "Dateien, die beim Laden Code ausführen, sind bekannt"
#   message: "pickles, or files that hold one: {count} ({files}); loading can run code"
#   message_de: "Pickles oder Dateien mit einem darin: {count} ({files}); beim Laden kann Code ausgeführt werden"
#   remedy: "ask who uses the files whether they are ever loaded, and as whom"
#   remedy_de: "Bei den Nutzern klären, ob die Dateien geladen werden und mit welchen Rechten"
package packhof.rules.file_pickle

checked contains a.digest if {
	some a in input.artifacts
	a.kind in {"dataset", "files", "packages"}
}

findings contains {
	"artifact": a.digest,
	"level": "review",
	"params": {"count": count(found), "files": substring(concat(", ", array.slice(found, 0, 5)), 0, 1000)},
} if {
	some a in input.artifacts
	a.kind in {"dataset", "files", "packages"}
	found := sort({f.path | some f in a.inspection.files; is_pickle(f)})
	count(found) > 0
}

is_pickle(f) if f.format in {"pickle", "torch-zip"}

is_pickle(f) if {
	some finding in f.findings
	startswith(finding.code, "pickle.")
}
