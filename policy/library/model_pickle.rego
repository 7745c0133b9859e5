# METADATA
# title: Models hold no pickle
# custom:
#   kinds: [model]
#   title_de: "Modelle enthalten kein Pickle"
#   message: "pickles, or files that hold one: {count} ({files}); loading can run code"
#   message_de: "Pickles oder Dateien mit einem darin: {count} ({files}); beim Laden kann Code ausgeführt werden"
#   remedy: "get the model as safetensors or GGUF"
#   remedy_de: "Modell als safetensors oder GGUF beziehen"
package packhof.rules.model_pickle

checked contains a.digest if {
	some a in input.artifacts
	a.kind == "model"
}

# By content: what a file is called says nothing.
findings contains {
	"artifact": a.digest,
	"level": "deny",
	"params": {"count": count(found), "files": substring(concat(", ", array.slice(found, 0, 5)), 0, 1000)},
} if {
	some a in input.artifacts
	a.kind == "model"
	found := sort({f.path | some f in a.inspection.files; is_pickle(f)})
	count(found) > 0
}

is_pickle(f) if f.format in {"pickle", "torch-zip"}

is_pickle(f) if {
	some finding in f.findings
	startswith(finding.code, "pickle.")
}
