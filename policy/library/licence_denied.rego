# METADATA
# title: No artifact is under a denied licence
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Kein Artefakt steht unter einer ausgeschlossenen Lizenz"
#   message: "parts are under {licences}"
#   message_de: "Teile stehen unter {licences}"
#   remedy: "replace the part, or have the licence accepted by those who may"
#   remedy_de: "Bestandteil ersetzen oder die Lizenz von der zuständigen Stelle annehmen lassen"
package packhof.rules.licence_denied

checked contains a.digest if some a in input.artifacts

findings contains {
	"artifact": a.digest,
	"level": "deny",
	"params": {"licences": substring(concat(", ", sort(found)), 0, 300)},
} if {
	some a in input.artifacts
	found := {l | some l in a.licences; denied(l)}
	count(found) > 0
}

# An identifier is denied whatever its suffix: AGPL-3.0-only, AGPL-3.0+.
denied_id(id) if {
	some entry in data.packhof.config.denied_licences
	base(id) == base(entry)
}

base(id) := regex.replace(lower(trim_space(id)), `(-only|-or-later|\+)$`, "")

ids(expression) := {word |
	some word in regex.split(`[\s()]+`, expression)
	not lower(word) in {"", "and", "or", "with"}
}

# Of alternatives without brackets one that is not denied can be chosen; of
# anything more complicated every part counts.
denied(expression) if {
	alternatives := choices(expression)
	count(alternatives) > 0
	every alternative in alternatives {
		some id in ids(alternative)
		denied_id(id)
	}
}

# A list that names the whole text denies a licence that is no identifier.
denied(expression) if denied_id(expression)

choices(expression) := [expression] if contains(expression, "(")

choices(expression) := regex.split(`(?i)\s+or\s+`, expression) if not contains(expression, "(")
