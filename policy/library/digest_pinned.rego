# METADATA
# title: Artifacts are pinned by digest
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Artefakte sind über ihre Prüfsumme festgelegt"
#   message: "{source} is pinned by {pin}; accepted is {accepted}"
#   message_de: "{source} ist festgelegt durch {pin}; zulässig ist {accepted}"
#   remedy: "name the digest in packhof.yaml, or accept what packhof plan writes down in accepted_pins"
#   remedy_de: "Prüfsumme in packhof.yaml angeben oder in accepted_pins zulassen, was packhof plan festhält"
package packhof.rules.digest_pinned

checked contains a.digest if some a in input.artifacts

findings contains {
	"artifact": a.digest,
	"level": "deny",
	"params": {
		"source": substring(a.origin.from, 0, 300),
		"pin": pin(a.origin),
		"accepted": substring(concat(", ", data.packhof.config.accepted_pins), 0, 300),
	},
} if {
	some a in input.artifacts
	not accepted(a.origin)
}

accepted(origin) if {
	origin.pinned
	origin.verified in data.packhof.config.accepted_pins
}

pin(origin) := origin.verified if origin.pinned

pin(origin) := "-" if not origin.pinned
