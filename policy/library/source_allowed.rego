# METADATA
# title: Artifacts come from allowed sources
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Artefakte kommen aus zugelassenen Quellen"
#   message: "{source} is not an allowed source"
#   message_de: "{source} ist keine zugelassene Quelle"
#   remedy: "add the source to allowed_sources, or fetch from an allowed one"
#   remedy_de: "Quelle in allowed_sources aufnehmen oder aus einer zugelassenen Quelle beziehen"
package packhof.rules.source_allowed

checked contains a.digest if some a in input.artifacts

findings contains {
	"artifact": a.digest,
	"level": "deny",
	"params": {"source": substring(a.origin.from, 0, 300)},
} if {
	some a in input.artifacts
	not allowed(a.origin)
}

allowed(origin) if {
	some pattern in data.packhof.config.allowed_sources
	matches(pattern, origin)
}

matches("*", _)

matches("local", origin) if origin.transport == "local"

# A host: "registry.example".
matches(pattern, origin) if {
	not contains(pattern, "/")
	not contains(pattern, "*")
	pattern != "local"
	pattern == origin.host
}

# All hosts below a domain: "*.example". A star at a host's end means nothing:
# "registry.example*" would let registry.example.elsewhere in.
matches(pattern, origin) if {
	startswith(pattern, "*.")
	not contains(pattern, "/")
	suffix := trim_prefix(pattern, "*")
	not contains(suffix, "*")
	endswith(origin.host, suffix)
}

# A path of a host: "registry.example/team/*", or without the star exactly.
matches(pattern, origin) if {
	[host, path] := cut(pattern)
	host == origin.host
	fits(path, place(origin))
}

fits(path, place) if {
	not contains(path, "*")
	path == place
}

fits(path, place) if {
	endswith(path, "/*")
	prefix := trim_suffix(path, "*")
	not contains(prefix, "*")
	startswith(place, prefix)
	not contains(place, "/../")
}

fits("*", _)

cut(text) := [substring(text, 0, at), substring(text, at + 1, -1)] if {
	at := indexof(text, "/")
	at >= 0
}

# Where on its host something is: without scheme, host, tag and digest.
place(origin) := trim_prefix(bare, concat("", [origin.host, "/"])) if {
	unschemed := regex.replace(origin.from, `^[a-z0-9+.-]+://`, "")
	undigested := split(unschemed, "@")[0]
	bare := regex.replace(undigested, `:[^/:]*$`, "")
}
