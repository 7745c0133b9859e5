# METADATA
# title: Image configs can be read
# custom:
#   kinds: [image]
#   title_de: "Die Konfiguration von Images ist lesbar"
#   message: "what the image runs, and as whom, could not be read: {reason}"
#   message_de: "Was das Image ausführt und als wer, war nicht lesbar: {reason}"
#   remedy: "look at the image by hand before it is approved"
#   remedy_de: "Image vor der Freigabe von Hand prüfen"
package packhof.rules.image_unread

checked contains a.digest if {
	some a in input.artifacts
	a.kind == "image"
}

findings contains {
	"artifact": a.digest,
	"level": "review",
	"params": {"reason": substring(reason, 0, 200)},
} if {
	some a in input.artifacts
	a.kind == "image"
	some reason in reasons(a.image)
}

reasons(image) := {c.reason | some c in image.configs; c.status != "read"} if image.status == "read"

reasons(image) := {image.reason} if image.status != "read"
