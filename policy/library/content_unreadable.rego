# METADATA
# title: All of the content could be looked into
# custom:
#   kinds: [model, dataset, files, packages]
#   title_de: "Der Inhalt konnte vollständig untersucht werden"
#   message: "files that could not be looked into, or not wholly: {count} ({files})"
#   message_de: "Nicht oder nicht ganz untersuchbare Dateien: {count} ({files})"
#   remedy: "look at the files by hand before they are approved"
#   remedy_de: "Dateien vor der Freigabe von Hand prüfen"
package packhof.rules.content_unreadable

checked contains a.digest if {
	some a in input.artifacts
	a.kind in {"model", "dataset", "files", "packages"}
}

findings contains {
	"artifact": a.digest,
	"level": "review",
	"params": {"count": count(found), "files": substring(concat(", ", array.slice(found, 0, 3)), 0, 1000)},
} if {
	some a in input.artifacts
	a.kind in {"model", "dataset", "files", "packages"}
	found := sort({text |
		some f in a.inspection.files
		f.unreadable
		text := sprintf("%s (%s)", [f.path, substring(f.reason, 0, 100)])
	})
	count(found) > 0
}
