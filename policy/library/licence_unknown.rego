# METADATA
# title: Licences are known
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Lizenzen sind bekannt"
#   message: "packages without a known licence: {unlicensed}; licences known in all: {known}"
#   message_de: "Pakete ohne bekannte Lizenz: {unlicensed}; bekannte Lizenzen insgesamt: {known}"
#   remedy: "ask the supplier, or add the licence where the SBOM is made"
#   remedy_de: "Beim Lieferanten erfragen oder die Lizenz beim Erzeugen der Stückliste ergänzen"
package packhof.rules.licence_unknown

checked contains a.digest if some a in input.artifacts

findings contains {
	"artifact": a.digest,
	"level": "info",
	"params": {"unlicensed": unlicensed, "known": count(a.licences)},
} if {
	some a in input.artifacts
	unlicensed := sum([s.unlicensed | some s in a.sbom])
	unlicensed > 0
}
