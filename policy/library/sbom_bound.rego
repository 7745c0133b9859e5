# METADATA
# title: SBOMs describe the artifact they come with
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Software-Stücklisten gehören zu ihrem Artefakt"
#   message: "an SBOM does not belong to {subject}: {reason}"
#   message_de: "Eine Software-Stückliste gehört nicht zu {subject}: {reason}"
#   remedy: "export the bundle again; the SBOM that came along is about something else"
#   remedy_de: "Lieferung neu exportieren; die mitgelieferte Stückliste beschreibt etwas anderes"
package packhof.rules.sbom_bound

checked contains a.digest if some a in input.artifacts

findings contains {
	"artifact": a.digest,
	"level": "deny",
	"params": {"subject": s.subject, "reason": substring(s.reason, 0, 200)},
} if {
	some a in input.artifacts
	some s in a.sbom
	s.status == "present"
	not s.bound
}
