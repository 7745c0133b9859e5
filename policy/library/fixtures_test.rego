# What tests of rules start from: an input without any finding, and ways to
# change it.
package packhof.rules.fixtures_test

# An input with one artifact of each kind that rules tell apart.
clean := with_artifacts([image, model, files])

with_artifacts(artifacts) := {
	"format": "packhof.policy-input/v1",
	"bundle": bundle,
	"time": {"floor": "2026-11-30T12:00:00Z", "wall": "2026-11-30T12:00:05Z", "skewSeconds": 5},
	"preview": false,
	"artifacts": artifacts,
	"removed": [],
}

bundle := {
	"digest": digest("b0"),
	"kind": "content",
	"channel": "plant-7",
	"epoch": 1,
	"serial": 42,
	"previous": digest("b1"),
	"gap": [],
	"created": "2026-11-29T08:00:00Z",
	"expires": "2027-02-28T08:00:00Z",
	"audience": ["gate-aaaaaaaaaaaaaaaa"],
	"role": "bundle:plant-7",
	"threshold": 1,
	"signers": [{
		"keyId": "3f9a3f9a3f9a3f9a",
		"owner": "release@example",
		"role": "bundle:plant-7",
		"notBefore": "2026-01-01T00:00:00Z",
		"notAfter": "2028-01-01T00:00:00Z",
	}],
	"blobs": 12,
	"bytes": 4096,
	"omitted": [],
	"untrusted": {"note": ""},
}

image := object.union(artifact("image", "a1"), {
	"image": {
		"status": "read",
		"reason": "",
		"configs": [image_config],
	},
	"inspection": {"status": "not-applicable", "reason": "layers are described by the SBOM", "files": [], "counted": []},
	"platforms": ["linux/amd64"],
})

image_config := {
	"platform": "linux/amd64",
	"digest": digest("a2"),
	"status": "read",
	"reason": "",
	"user": "1000",
	"entrypoint": ["/server"],
	"command": [],
	"envNames": ["PATH"],
	"exposedPorts": ["8080/tcp"],
	"untrusted": {"labels": []},
}

model := object.union(artifact("model", "c1"), {"inspection": inspected([file("model.safetensors", "safetensors"), file("config.json", "json")])})

files := object.union(artifact("files", "d1"), {"inspection": inspected([file("tool.sh", "script")])})

inspected(list) := {"status": "done", "reason": "", "files": list, "counted": []}

file(path, format) := {
	"path": path,
	"digest": digest("f1"),
	"size": 100,
	"format": format,
	"nameSays": format,
	"mismatch": false,
	"findings": [],
	"unreadable": false,
	"reason": "",
}

file_with(path, format, code) := object.union(file(path, format), {"findings": [{
	"code": code,
	"untrusted": {"path": "", "detail": ""},
}]})

artifact(kind, byte) := {
	"kind": kind,
	"name": concat("-", ["the", kind]),
	"version": "1.2",
	"digest": digest(byte),
	"origin": {
		"host": "registry.example",
		"from": "registry.example/team/app:1.2",
		"transport": "tls",
		"verified": "digest",
		"pinned": true,
	},
	"platforms": [],
	"size": 1024,
	"licences": ["Apache-2.0"],
	"destinations": [],
	"change": {"state": "new", "fromVersion": "", "fromDigest": ""},
	"image": {"status": "not-applicable", "reason": "", "configs": []},
	"inspection": {"status": "pending", "reason": "not yet", "files": [], "counted": []},
	"sbom": [sbom(digest(byte))],
	"signatures": [],
	"referrers": [],
	"untrusted": {"labels": []},
}

referrer(kind, list) := {
	"digest": digest("e1"),
	"subject": digest("a1"),
	"kind": kind,
	"inspection": inspected(list),
	"untrusted": {"artifactType": "application/vnd.example"},
}

sbom(subject) := {
	"subject": subject,
	"status": "present",
	"bound": true,
	"format": "CycloneDX 1.6",
	"tool": "scanner 1",
	"components": 10,
	"packages": 8,
	"unlicensed": 0,
	"unknowns": 0,
	"reason": "",
}

# Two hexadecimal digits, repeated.
digest(byte) := concat("", ["sha256:", concat("", [byte | some _ in numbers.range(1, 32)])])
