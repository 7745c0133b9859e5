# METADATA
# title: No bundle of the channel is missing
# custom:
#   kinds: [bundle]
#   title_de: "Keine Lieferung des Kanals fehlt"
#   message: "bundles before this one that never arrived: {count} (serials {serials})"
#   message_de: "Nie angekommene Lieferungen vor dieser: {count} (laufende Nummern {serials})"
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
