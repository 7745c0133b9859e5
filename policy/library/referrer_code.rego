# METADATA
# title: Nothing that runs is attached to artifacts
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "An Artefakten hängt nichts Ausführbares"
#   message: "attached to it, and code or a pickle: {count} ({files})"
#   message_de: "Daran angehängt und Code oder Pickle: {count} ({files})"
#   remedy: "have the bundle exported without it; what is meant to run is an artifact of its own"
#   remedy_de: "Lieferung ohne dies exportieren lassen; was laufen soll, ist ein eigenes Artefakt"
package packhof.rules.referrer_code

checked contains a.digest if some a in input.artifacts

# By content, whatever the referrer says that it is.
findings contains {
	"artifact": a.digest,
	"level": "deny",
	"params": {"count": count(found), "files": substring(concat(", ", array.slice(found, 0, 5)), 0, 1000)},
} if {
	some a in input.artifacts
	found := sort({text |
		some r in a.referrers
		some f in r.inspection.files
		runs(f)
		text := sprintf("%s/%s", [substring(r.digest, 7, 12), f.path])
	})
	count(found) > 0
}

runs(f) if f.format in {"pickle", "torch-zip"}

runs(f) if {
	some finding in f.findings
	code(finding.code)
}

code(text) if startswith(text, "pickle.")

code(text) if text in {"executable.content", "keras.lambda", "script.content", "torch.code"}
