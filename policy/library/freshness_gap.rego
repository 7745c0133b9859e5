# METADATA
# title: No bundle of the channel is missing
# custom:
#   kinds: [bundle]
#   title_de: "Keine Lieferung des Kanals fehlt"
#   message: "{count} bundles before this one never arrived, with the serials {serials}"
#   message_de: "{count} Lieferungen vor dieser sind nie angekommen, mit den laufenden Nummern {serials}"
#   remedy: "ask the sender for the missing bundles, or decide that they are not needed"
#   remedy_de: "Fehlende Lieferungen beim Absender anfordern oder entscheiden, dass sie nicht gebraucht werden"
package packhof.rules.freshness_gap

checked contains ""

findings contains {
	"artifact": "",
	"level": "review",
	"params": {"count": count(input.bundle.gap), "serials": concat(", ", array.slice(serials, 0, 20))},
} if {
	count(input.bundle.gap) > 0
	serials := [format_int(n, 10) | some n in input.bundle.gap]
}
