# METADATA
# title: The clock and the signed dates agree
# custom:
#   kinds: [bundle]
#   title_de: "Uhr und signierte Daten passen zusammen"
#   message: "the bundle was made at {created}, and the clock of this machine says {wall}: one of the two is wrong"
#   message_de: "Die Lieferung wurde am {created} erstellt, die Uhr dieser Maschine zeigt {wall}: Eines von beiden ist falsch"
#   remedy: "set the clock of this machine, or ask the sender to set theirs"
#   remedy_de: "Uhr dieser Maschine stellen oder den Absender bitten, seine zu stellen"
package packhof.rules.freshness_skew

checked contains ""

# Ten minutes of difference are two clocks that nobody compares.
findings contains {
	"artifact": "",
	"level": "warn",
	"params": {"created": input.bundle.created, "wall": input.time.wall},
} if {
	ahead := time.parse_rfc3339_ns(input.bundle.created) - time.parse_rfc3339_ns(input.time.wall)
	ahead > 600 * 1000000000
}
