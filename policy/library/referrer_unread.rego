# METADATA
# title: What is attached to artifacts could be looked into
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Was an Artefakten hängt, konnte untersucht werden"
#   message: "attached to it, and not looked into, or not wholly: {count} ({referrers})"
#   message_de: "Daran angehängt und nicht oder nicht ganz untersucht: {count} ({referrers})"
#   remedy: "look at what is attached by hand before it is approved"
#   remedy_de: "Angehängtes vor der Freigabe von Hand prüfen"
package packhof.rules.referrer_unread

checked contains a.digest if some a in input.artifacts

# Whether an SBOM could be read, rules about SBOMs say.
findings contains {
	"artifact": a.digest,
	"level": "review",
	"params": {"count": count(found), "referrers": substring(concat(", ", array.slice(found, 0, 5)), 0, 1000)},
} if {
	some a in input.artifacts
	found := sort({substring(r.digest, 7, 12) | some r in a.referrers; r.kind != "sbom"; unread(r)})
	count(found) > 0
}

# A preview judges before the content is there; it can never be approved.
unread(r) if {
	not input.preview
	r.inspection.status != "done"
}

unread(r) if {
	some f in r.inspection.files
	f.unreadable
}
