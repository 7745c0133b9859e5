# METADATA
# title: SBOMs name what is in the artifact
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Software-Stücklisten nennen, was im Artefakt steckt"
#   message: "SBOMs without a single component: {empty} of {subjects}"
#   message_de: "Software-Stücklisten ohne einen einzigen Bestandteil: {empty} von {subjects}"
#   remedy: "find out why the scanner found nothing, and export again"
#   remedy_de: "Klären, warum der Scanner nichts gefunden hat, und erneut exportieren"
package packhof.rules.sbom_empty

checked contains a.digest if some a in input.artifacts

findings contains {
	"artifact": a.digest,
	"level": level(a.kind),
	"params": {"empty": count(empty), "subjects": count(a.sbom)},
} if {
	some a in input.artifacts
	empty := [s | some s in a.sbom; s.status == "present"; s.components == 0]
	count(empty) > 0
}

# An image of one program is empty to most scanners, and still has content.
level("image") := "review"

level(kind) := "info" if kind != "image"
