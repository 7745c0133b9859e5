# METADATA
# title: Nothing was fetched over plain HTTP
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Nichts wurde über unverschlüsseltes HTTP geholt"
#   message: "fetched from {host} without TLS"
#   message_de: "Von {host} ohne TLS geholt"
#   remedy: "fetch over https"
#   remedy_de: "Über https beziehen"
package packhof.rules.source_plain_http

checked contains a.digest if some a in input.artifacts

findings contains {
	"artifact": a.digest,
	"level": "deny",
	"params": {"host": substring(a.origin.host, 0, 300)},
} if {
	some a in input.artifacts
	a.origin.transport == "plain"
}
