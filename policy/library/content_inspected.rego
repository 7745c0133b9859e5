# METADATA
# title: Content has been looked into
# custom:
#   kinds: [model, dataset, files, packages]
#   title_de: "Inhalte wurden untersucht"
#   message: "the content was not looked into: {reason}"
#   message_de: "Der Inhalt wurde nicht untersucht: {reason}"
#   remedy: "have the bundle inspected again"
#   remedy_de: "Lieferung erneut untersuchen lassen"
package packhof.rules.content_inspected

checked contains a.digest if {
	some a in input.artifacts
	a.kind in {"model", "dataset", "files", "packages"}
}

# A preview judges before the content is there; it can never be approved.
findings contains {
	"artifact": a.digest,
	"level": level(a.kind),
	"params": {"reason": substring(a.inspection.reason, 0, 200)},
} if {
	not input.preview
	some a in input.artifacts
	a.kind in {"model", "dataset", "files", "packages"}
	a.inspection.status != "done"
}

level("model") := "deny"

level(kind) := "review" if kind != "model"
