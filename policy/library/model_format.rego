# METADATA
# title: Model files are in known formats
# custom:
#   kinds: [model]
#   title_de: "Modelldateien haben bekannte Formate"
#   message: "files in formats that nobody has vouched for: {count} ({files})"
#   message_de: "Dateien in Formaten, für die niemand einsteht: {count} ({files})"
#   remedy: "find out what reads these files, then add the format to model_formats"
#   remedy_de: "Klären, womit diese Dateien gelesen werden, dann das Format in model_formats aufnehmen"
package packhof.rules.model_format

checked contains a.digest if {
	some a in input.artifacts
	a.kind == "model"
}

# What is a pickle has a finding of its own.
findings contains {
	"artifact": a.digest,
	"level": "review",
	"params": {"count": count(found), "files": substring(concat(", ", array.slice(found, 0, 5)), 0, 1000)},
} if {
	some a in input.artifacts
	a.kind == "model"
	found := sort({text |
		some f in a.inspection.files
		not f.format in known
		text := sprintf("%s (%s)", [f.path, f.format])
	})
	count(found) > 0
}

known contains format if some format in data.packhof.config.model_formats

known contains format if some format in {"pickle", "torch-zip", ""}
