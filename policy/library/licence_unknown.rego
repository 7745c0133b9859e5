# METADATA
# title: Licences are known
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Lizenzen sind bekannt"
#   message: "for {unlicensed} packages no licence is known; licences known in all: {known}"
#   message_de: "Für {unlicensed} Pakete ist keine Lizenz bekannt; bekannte Lizenzen insgesamt: {known}"
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
	unknown(a.licences, unlicensed)
}

unknown(_, unlicensed) if unlicensed > 0

unknown([], 0)
