# METADATA
# title: What is attached to artifacts is known
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Was an Artefakten hängt, ist bekannt"
#   message: "attached to it, neither SBOM nor signature: {count} (type {types})"
#   message_de: "Daran angehängt, weder Stückliste noch Signatur: {count} (Typ {types})"
#   remedy: "ask the sender what is attached and who needs it, or have it left out"
#   remedy_de: "Beim Absender klären, was angehängt ist und wer es braucht, oder es weglassen lassen"
package packhof.rules.referrer_unknown

checked contains a.digest if some a in input.artifacts

# The type is shown as its maker wrote it; that nobody knows it is a fact.
findings contains {
	"artifact": a.digest,
	"level": "review",
	"params": {"count": count(unknown), "types": substring(concat(", ", sort(types)), 0, 300)},
} if {
	some a in input.artifacts
	unknown := [r | some r in a.referrers; r.kind == "other"]
	count(unknown) > 0
	types := {name(r.untrusted.artifactType) | some r in unknown}
}

name("") := "?"

name(type) := substring(type, 0, 100) if type != ""
