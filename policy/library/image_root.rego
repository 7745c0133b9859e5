# METADATA
# title: Images do not run as root
# custom:
#   kinds: [image]
#   title_de: "Images laufen nicht als root"
#   message: "runs as root on {platforms}"
#   message_de: "Läuft als root auf {platforms}"
#   remedy: "set a user in the image, or make sure that the cluster does"
#   remedy_de: "Im Image einen Benutzer setzen oder sicherstellen, dass der Cluster das tut"
package packhof.rules.image_root

checked contains a.digest if {
	some a in input.artifacts
	a.kind == "image"
}

findings contains {
	"artifact": a.digest,
	"level": "review",
	"params": {"platforms": substring(concat(", ", sort(found)), 0, 300)},
} if {
	some a in input.artifacts
	a.kind == "image"
	found := {c.platform | some c in a.image.configs; c.status == "read"; is_root(c.user)}
	count(found) > 0
}

# "user:group"; no user at all is root, and so is every way to write 0.
is_root(user) if {
	name := trim_space(split(user, ":")[0])
	regex.match(`^(root|[+-]?0*)$`, name)
}
