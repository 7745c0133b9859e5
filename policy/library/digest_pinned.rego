# METADATA
# title: Artifacts are pinned by digest
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Artefakte sind über ihre Prüfsumme festgelegt"
#   message: "{source} was not fetched by a digest written down before"
#   message_de: "{source} wurde nicht anhand einer vorher festgehaltenen Prüfsumme geholt"
#   remedy: "run packhof plan, then export what packhof.lock says"
#   remedy_de: "packhof plan ausführen, dann genau das exportieren, was packhof.lock nennt"
package packhof.rules.digest_pinned

checked contains a.digest if some a in input.artifacts

findings contains {
	"artifact": a.digest,
	"level": "deny",
	"params": {"source": substring(a.origin.from, 0, 300)},
} if {
	some a in input.artifacts
	not a.origin.pinned
}
