# METADATA
# title: The clock and the signed dates agree
# custom:
#   kinds: [bundle]
#   title_de: "Uhr und signierte Daten passen zusammen"
#   message: "the bundle was made at {created}, which is in the future of this machine: one of the two clocks is wrong"
#   message_de: "Die Lieferung wurde am {created} erstellt, für diese Maschine liegt das in der Zukunft: Eine der beiden Uhren geht falsch"
#   remedy: "set the clock of this machine, or ask the sender to set theirs"
#   remedy_de: "Uhr dieser Maschine stellen oder den Absender bitten, seine zu stellen"
package packhof.rules.freshness_skew

checked contains ""

# Ten minutes of difference are two clocks that nobody compares.
findings contains {
	"artifact": "",
	"level": "warn",
	"params": {"created": input.bundle.created},
} if {
	ahead := time.parse_rfc3339_ns(input.bundle.created) - time.parse_rfc3339_ns(input.time.wall)
	ahead > 600 * 1000000000
}
