# METADATA
# title: The bundle is in its time, by the clock on the wall
# custom:
#   kinds: [bundle]
#   title_de: "Die Lieferung ist nach der Uhr der Anlage nicht abgelaufen"
#   message: "by the clock of this machine the bundle expired at {expires}; nothing that was signed proves it yet"
#   message_de: "Nach der Uhr dieser Maschine ist die Lieferung seit {expires} abgelaufen; noch beweist das kein signiertes Datum"
#   remedy: "check the clock; if it is right, ask the sender for a new bundle"
#   remedy_de: "Uhr prüfen; geht sie richtig, beim Absender eine neue Lieferung anfordern"
package packhof.rules.freshness_clock

checked contains ""

# Past its end by the time floor, a bundle never comes as far as a rule.
findings contains {
	"artifact": "",
	"level": "review",
	"params": {"expires": input.bundle.expires},
} if {
	input.bundle.expires <= input.time.wall
}
