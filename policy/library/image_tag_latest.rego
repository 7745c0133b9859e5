# METADATA
# title: Image tags do not move
# custom:
#   kinds: [image]
#   title_de: "Image-Tags sind unveränderlich"
#   message: "the tag {tag} means something else tomorrow"
#   message_de: "Das Tag {tag} bezeichnet morgen etwas anderes"
#   remedy: "choose a tag with a version"
#   remedy_de: "Ein Tag mit Versionsnummer wählen"
package packhof.rules.image_tag_latest

checked contains a.digest if {
	some a in input.artifacts
	a.kind == "image"
}

findings contains {
	"artifact": a.digest,
	"level": "warn",
	"params": {"tag": a.version},
} if {
	some a in input.artifacts
	a.kind == "image"
	a.version in data.packhof.config.mutable_tags
}
