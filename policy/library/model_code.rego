# METADATA
# title: Models bring no code
# custom:
#   kinds: [model]
#   title_de: "Modelle bringen keinen Code mit"
#   message: "files that are code, or want code run: {count} ({files})"
#   message_de: "Dateien, die Code sind oder Code ausführen lassen: {count} ({files})"
#   remedy: "have the code read by someone, and load without trust_remote_code"
#   remedy_de: "Code lesen lassen; ohne trust_remote_code laden"
package packhof.rules.model_code

checked contains a.digest if {
	some a in input.artifacts
	a.kind == "model"
}

findings contains {
	"artifact": a.digest,
	"level": "review",
	"params": {"count": count(found), "files": substring(concat(", ", array.slice(found, 0, 5)), 0, 1000)},
} if {
	some a in input.artifacts
	a.kind == "model"
	found := sort({f.path | some f in a.inspection.files; is_code(f)})
	count(found) > 0
}

is_code(f) if {
	some finding in f.findings
	finding.code in {
		"executable.content", "keras.lambda", "model.remote-code",
		"python.source", "script.content", "torch.code",
	}
}
