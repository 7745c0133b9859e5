# METADATA
# title: The bundle is complete
# custom:
#   kinds: [bundle]
#   title_de: "Die Lieferung ist vollständig"
#   message: "artifacts left out when it was exported: {count} ({names})"
#   message_de: "Beim Export ausgelassene Artefakte: {count} ({names})"
#   remedy: "export again without --allow-incomplete"
#   remedy_de: "Ohne --allow-incomplete erneut exportieren"
package packhof.rules.bundle_incomplete

checked contains ""

findings contains {
	"artifact": "",
	"level": "warn",
	"params": {"count": count(input.bundle.omitted), "names": substring(concat(", ", names), 0, 500)},
} if {
	count(input.bundle.omitted) > 0
	names := [o.name | some o in input.bundle.omitted]
}
