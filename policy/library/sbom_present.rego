# METADATA
# title: Artifacts carry an SBOM
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Artefakte haben eine Software-Stückliste (SBOM)"
#   message: "missing SBOMs: {missing} of {subjects} ({reason})"
#   message_de: "Fehlende Software-Stücklisten (SBOM): {missing} von {subjects} ({reason})"
#   remedy: "have the SBOM made where the bundle is exported"
#   remedy_de: "Software-Stückliste beim Export der Lieferung erzeugen lassen"
package packhof.rules.sbom_present

checked contains a.digest if some a in input.artifacts

findings contains {
	"artifact": a.digest,
	"level": level(a.kind),
	"params": {
		"missing": count(missing),
		"subjects": count(a.sbom),
		"reason": substring(missing[0].reason, 0, 200),
	},
} if {
	some a in input.artifacts
	missing := [s | some s in a.sbom; s.status != "present"]
	count(missing) > 0
}

# What runs must say what it is made of; files can be looked at one by one.
level("image") := "deny"

level(kind) := "review" if kind != "image"
