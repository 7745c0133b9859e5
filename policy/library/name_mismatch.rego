# METADATA
# title: Files are what their names say
# custom:
#   kinds: [model, dataset, files, packages]
#   title_de: "Dateien sind, was ihr Name sagt"
#   message: "files with another content than the name says: {count} ({files})"
#   message_de: "Dateien mit anderem Inhalt, als der Name sagt: {count} ({files})"
#   remedy: "ask the supplier which of the two is meant"
#   remedy_de: "Beim Lieferanten klären, was gemeint ist"
package packhof.rules.name_mismatch

checked contains a.digest if {
	some a in input.artifacts
	a.kind in {"model", "dataset", "files", "packages"}
}

findings contains {
	"artifact": a.digest,
	"level": level(a.kind),
	"params": {"count": count(found), "files": substring(concat(", ", array.slice(found, 0, 5)), 0, 1000)},
} if {
	some a in input.artifacts
	a.kind in {"model", "dataset", "files", "packages"}
	found := sort({text |
		some f in a.inspection.files
		f.mismatch
		text := sprintf("%s (%s)", [f.path, f.format])
	})
	count(found) > 0
}

level("model") := "review"

level(kind) := "warn" if kind != "model"
