package cli

import "slices"

// Entry explains a stable error code: the text behind "help errors CODE".
type Entry struct {
	Code    string
	Exit    int
	Meaning string
	Remedy  string // shown when the error itself knows none
}

// Lookup finds the entry of a code.
func Lookup(code string) (Entry, bool) {
	all := Catalog()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Code == code })
	if i < 0 {
		return Entry{}, false
	}
	return all[i], true
}

// Catalog lists every code that a command can print, sorted by code.
func Catalog() []Entry {
	all := slices.Concat(generalEntries(), sourceEntries(), registryEntries(), exportEntries(), bundleEntries(), trustEntries(), signingEntries(), scanEntries(),
		gateEntries(), caseEntries(), destinationEntries(), requestEntries(), s3Entries())
	slices.SortFunc(all, func(a, b Entry) int {
		if a.Code < b.Code {
			return -1
		}
		return 1
	})
	return all
}

func generalEntries() []Entry {
	return []Entry{
		{"usage", ExitUsage, "The command line is wrong.", ""},
		{"failed", ExitFailed, "Something failed that has no code of its own; the message says what.", ""},
		{"interrupted", ExitInterrupted, "The program was told to stop (Ctrl-C, SIGTERM). Nothing half-written is left under a final name.", "run the same command again; it goes on where it can"},
		{"config/missing", ExitUsage, "A configuration file is not there.", ""},
		{"config/unreadable", ExitUsage, "A configuration file is not a plain file, or too large.", "put a plain file, no larger than what is named, in its place"},
		{"config/syntax", ExitUsage, "A configuration file is not YAML, or uses what of YAML is not accepted.", "correct the file at the place that is named"},
		{"config/unknown-key", ExitUsage, "A configuration file has a key that nobody knows. Keys are never ignored, since a misspelt one would silently do nothing.", "packhof schema export"},
		{"config/invalid", ExitUsage, "A value in a configuration file cannot be right.", "correct the value at the place that is named"},
		{"config/bad-ca", ExitUsage, "A file that should hold a certificate authority does not.", "name a file with certificates in PEM"},
		{"config/exists", ExitUsage, "A file that a command would make is there already, and nothing is overwritten.", "remove it first, or choose another folder"},
		{"project/busy", ExitFailed, "Another packhof works in the same folder.", "wait for it to end"},
		{"passphrase/none", ExitUsage, "A key needs its passphrase, and there is no terminal to ask at.", ""},
		{"passphrase/command", ExitFailed, "The command that should print the passphrase failed.", "run the command by itself, and mend what it complains of"},
		{"passphrase/differ", ExitFailed, "A new passphrase was typed differently the second time, so no key was made.", "run the command again, and type the same twice"},
		{"disk/full", ExitFailed, "A disk of this machine is full. Nothing half-written is left under a final name.", "free space, or set store in packhof.yaml to a larger disk"},
		{"disk/file-too-large", ExitFailed, "A file system or a limit of this machine does not take a file of this size.", "use another file system, or raise the limit (ulimit -f)"},
		{"disk/read-only", ExitFailed, "The place to write to is read-only.", "write to another folder"},
		{"file/permission", ExitFailed, "The operating system does not allow it.", "check owner and mode of the file"},
		{"file/not-plain", ExitFailed, "Where a file of ours should be there is a folder, a pipe, a device or a link, or a file that is far too large.", "bring the file back from a backup"},
		{"file/missing", ExitFailed, "A file is not there.", "check the path"},
		{"digest/malformed", ExitUsage, "Text that should be a digest is not one.", "write sha256: and 64 lower-case hex digits"},
	}
}

func sourceEntries() []Entry {
	return []Entry{
		{"source/unreachable", ExitNoSource, "A host does not answer: no network, no such name, refused, timed out.", "check the network, the proxy (HTTPS_PROXY) and the address, then run it again"},
		{"source/tls-unknown-authority", ExitNoSource, "A host shows a certificate of an authority that this machine does not trust.", "name the authority in packhof.yaml: hosts.HOST.ca"},
		{"source/plain-http", ExitUsage, "A host would be spoken to without TLS, which packhof.yaml does not allow for it.", "use https, or allow it in packhof.yaml: hosts.HOST.plainHTTP: true"},
		{"source/not-found", ExitFailed, "The host answers, and has no such thing.", "correct the path or the address in packhof.yaml"},
		{"source/failed", ExitNoSource, "The host answers with an error of its own.", "run it again later"},
		{"source/rate-limited", ExitNoSource, "The host wants fewer requests.", "try again later, or log in: many hosts allow more then"},
		{"source/moved", ExitFailed, "What a name stands for has changed since the lock was made. An export does exactly the lock, so it stops.", "packhof plan"},
		{"source/wrong-content", ExitDamaged, "The host delivered other bytes than those that were named. They were not kept.", "compare the sha256 with the publisher's; do not use the file until it is clear"},
		{"source/no-size", ExitFailed, "A web server does not say how long a file is.", "download it yourself and name it as  file:"},
		{"source/unreadable", ExitFailed, "A file of a folder cannot be read.", "check owner and mode of the file"},
		{"source/changing", ExitFailed, "A file changes while it is read.", "stop what writes to it, and run the same command again"},
		{"source/not-a-file", ExitFailed, "A folder holds something that is neither a file nor a folder.", "remove it, or replace the link by the file it points to"},
		{"auth/required", ExitNotLoggedIn, "A host wants credentials, or does not accept those it got.", "docker login HOST"},
		{"source/lock-contradiction", ExitFailed, "The lock says two different things of one artifact.", "packhof plan"},
		{"source/derived-differs", ExitFailed, "The part that was chosen of an index does not come out as it is locked.", "packhof plan"},
		{"source/platform-malformed", ExitUsage, "Text that should name a platform does not.", "write os/architecture, such as linux/amd64 or linux/arm/v7"},
		{"source/platform-missing", ExitFailed, "An image is not made for a platform that was asked for.", "choose from those that the image has under platforms in packhof.yaml"},
		{"source/foreign-layer", ExitFailed, "An image leaves layers to other servers (urls), which are never followed.", "use an image without foreign layers"},
		{"source/schema1", ExitFailed, "An image has Docker's old schema 1.", "copy it into a registry of yours with  skopeo copy --format oci  and name that"},
		{"source/config-malformed", ExitDamaged, "An image has a configuration that cannot be read.", "have its publisher build the image again, or leave it out"},
		{"reference/malformed", ExitUsage, "Text that should name an image does not.", "write registry/repository:tag, such as registry.example/team/app:1.0"},
		{"oci/too-many-entries", ExitDamaged, "An artifact names more files than one can have.", "have its sender split it into several artifacts"},
		{"oci/foreign-layer", ExitDamaged, "An image has a layer that clients would fetch from another server, or that may not be passed on.", "have its sender leave the artifact out"},
		{"oci/malformed", ExitDamaged, "A manifest of an image is not what the OCI specification asks for.", "have the image built again, or leave it out"},
		{"content/corrupt", ExitDamaged, "Bytes are not the ones that their digest promises. They were not kept.", "try again; if it stays, tell the operator of the source"},
	}
}

func exportEntries() []Entry {
	return []Entry{
		{"export/incomplete", ExitIncomplete, "Several artifacts could not be had. All of them are listed; nothing was sealed.", "mend them and run it again"},
		{"lock/missing", ExitUsage, "There is no packhof.lock.", "packhof plan"},
		{"lock/malformed", ExitUsage, "packhof.lock is not a lock that this version reads.", "packhof plan"},
		{"lock/foreign", ExitUsage, "packhof.lock belongs to another channel.", "packhof plan"},
		{"lock/position", ExitFailed, "packhof.lock has another place in the channel than the ledger leaves for it; perhaps it was merged from two.", "packhof plan"},
		{"lock/stale", ExitFailed, "packhof.yaml was edited after packhof.lock was made, so an export would send something else than it asks for.", "packhof plan"},
		{"lock/expired", ExitFailed, "The bundle of this lock would have expired already.", "packhof plan"},
		{"lock/trust-changed", ExitFailed, "The trust documents have changed since the lock was made.", "packhof plan"},
		{"ledger/missing", ExitFailed, "There is no packhof.ledger. Without it one serial could go out with two contents, so nothing is sealed.", "bring it back from version control or a backup; for a channel that has never sent anything:  packhof init --ledger-only"},
		{"ledger/changed", ExitFailed, "packhof.ledger was changed by somebody else while a command ran.", "run the same command again; if the serial is taken by now, packhof plan"},
		{"ledger/foreign", ExitUsage, "packhof.ledger belongs to another channel than packhof.yaml names.", "name the channel of the ledger in packhof.yaml, or make a project of its own for the other one"},
		{"ledger/malformed", ExitFailed, "packhof.ledger cannot be read.", "bring it back from version control or a backup"},
		{"ledger/epoch", ExitFailed, "The ledger knows a later epoch than the trust root.", "bring the newest trust root back from version control"},
		{"serial/changed", ExitFailed, "A serial is sealed for good: it cannot go out again with other content.", "packhof plan"},
		{"serial/stale", ExitFailed, "A later serial has been sealed already.", "packhof plan"},
		{"serial/abandoned", ExitFailed, "A serial was given up for good: nothing goes out under it any more.", "packhof plan"},
		{"serial/delivered", ExitFailed, "A serial that a gate has, or may have, cannot be given up: the gate would see two histories.", "send what is lacking of it: packhof resend --want FILE; or send the next one: packhof plan"},
		{"serial/not-planned", ExitUsage, "A serial is neither sealed nor the next one, so there is nothing to give up.", "packhof serial list"},
		{"cache/manifest-lost", ExitFailed, "The store has lost the manifest of a sealed serial, so nobody knows which content must stay. Nothing was removed.", ""},
		{"store/foreign", ExitUsage, "The folder that packhof.yaml names as the store holds files and is no store. A store is swept, so nothing else may lie in it.", "name an empty folder, or one that is not there yet, as store in packhof.yaml"},
		{"store/rotten", ExitDamaged, "A blob in the store was not what its name says any more. It was dropped; nothing went out.", "run the same command again: it is fetched again; look after the disk of the store"},
		{"store/busy", ExitFailed, "Two processes bring pieces of the same blob at the same time.", "wait for the other to end, and run the same command again"},
		{"store/missing", ExitFailed, "The store has lost a blob.", "packhof plan"},
		{"artifact/empty", ExitFailed, "An artifact has no files.", "check the path in packhof.yaml"},
		{"artifact/bad-path", ExitFailed, "A file has a name that not every destination can keep.", "rename the file, or leave it out"},
		{"artifact/too-many-files", ExitFailed, "A folder has more files than one artifact takes.", "split the tree into several artifacts"},
		{"medium/full", ExitFailed, "The medium has too little free space. No volume is half there.", "free space there, or write to another folder with --to"},
		{"medium/file-too-large", ExitFailed, "The medium's file system does not take a file of this size.", "write smaller files: --volume-size fat32"},
		{"medium/taken", ExitFailed, "Where the bundle should go stands something else.", "remove it, or write to another folder with --to"},
		{"medium/busy", ExitFailed, "Another packhof is writing the same volume.", "wait until it has ended"},
		{"medium/name-too-long", ExitFailed, "The medium's file system does not take names as long as those of volumes.", "write to a file system that takes long names, such as vfat, exFAT or ext4"},
		{"medium/lost", ExitNoDestination, "The medium stopped answering while it was written to: it broke or was taken away.", "put it in again and run the same command"},
		{"medium/left-changed", ExitDamaged, "What an interrupted export left on the medium is not what it wrote there.", "run the same command again: it begins anew"},
		{"medium/readback", ExitDamaged, "The medium does not give back what was written to it.", "use another medium; this one loses data"},
	}
}

func bundleEntries() []Entry {
	return []Entry{
		{"format/malformed", ExitDamaged, "A document is not strict JSON of its format.", "have its sender make it again"},
		{"format/invalid", ExitDamaged, "A document contradicts itself or its format.", "have its sender make it again"},
		{"format/unknown", ExitFailed, "A document has a format that this version does not read.", "use a newer version"},
		{"format/too-large", ExitDamaged, "A document is larger than its format allows.", "have its sender make it again, smaller"},
		{"format/critical-extension", ExitFailed, "A bundle needs something that this version does not know.", "use a newer version"},
		{"volume/encrypted", ExitUsage, "A volume is encrypted, and there is no key to open it with.", "open it with --identity FILE, or at the gate that it is meant for"},
		{"volume/other-recipient", ExitDenied, "A volume is encrypted, and not for this gate or this key. Damage of its header can look the same.", "have it encrypted to this gate; if it was, copy it from its original again"},
		{"encrypt/recipient", ExitUsage, "What to encrypt to is no gate and no age recipient.", "name a gate of the trust root, as in  packhof trust show, or a recipient that begins with age1"},
		{"encrypt/no-recipient", ExitFailed, "Nothing is known that could be encrypted to for a gate: it was enrolled before it had a key for that.", "bring the gate's new enrol.json here, then  packhof trust add-gate enrol.json"},
		{"encrypt/other-gate", ExitUsage, "A bundle would be encrypted to a gate that it is not meant for.", "name a gate that it is meant for, or add it to audience in packhof.yaml and plan again"},
		{"encrypt/identity", ExitUsage, "A file holds no private age key that can be used.", "name a file as  age-keygen  writes it"},
		{"volume/damaged", ExitDamaged, "Bytes of a volume are missing, or not the right ones.", "copy the volume from its original again, or have it exported again"},
		{"volume/unreadable", ExitDamaged, "A medium does not give the bytes of a volume: it gives errors, or was taken away.", "put it in again and try once more; else copy the volume from its original again"},
		{"volume/foreign", ExitDamaged, "Parts of a volume belong to different bundles.", "copy the volume from its original again"},
		{"volume/not-a-bundle", ExitDamaged, "A file is no bundle.", "name the file that ends in .tar"},
		{"volume/not-a-file", ExitUsage, "A path is not a file.", "name a file, or a folder that holds the volumes"},
		{"volume/not-complete", ExitIncomplete, "Volumes of a set are missing.", "bring the volumes that are missing, and name them too"},
		{"volume/head-differs", ExitDamaged, "Volumes of one bundle bring different trust documents.", "ask the sender which are good, and leave out the others"},
		{"volume/none", ExitUsage, "A folder holds no bundle.", "name the file; a bundle is one such as plant-7-000042.tar"},
		{"volume/several", ExitUsage, "There are several bundles where one is asked for.", "name the volumes of one of them"},
		{"volume/crowded", ExitUsage, "A folder holds too many files to look for volumes in it.", "name the volumes themselves, or put them into a folder of their own"},
		{"volume/size-malformed", ExitUsage, "A size of volumes is not in a form that is understood.", ""},
		{"volume/too-small", ExitUsage, "The size of the volumes leaves no room for content.", ""},
		{"volume/too-many", ExitUsage, "The size of the volumes makes more of them than a set can have.", ""},
		{"volume/pieces-wrong", ExitDamaged, "The segments of a blob that came in several volumes do not make that blob.", "receive all the volumes again; nothing tells which of them is wrong"},
		{"volume/signatures-differ", ExitFailed, "Beside the volumes lie several signatures that name the same key, and nothing tells which is good.", "name the trust root: --trust FOLDER"},
		{"volume/no-such", ExitUsage, "A volume set has no volume of that number.", "packhof resend --set ID --volume N, with the set as packhof export printed it"},
		{"volume/no-such-set", ExitUsage, "No set with that id went out from here, or several begin like that, or it cannot be made again as it was.", "name the set as packhof export printed it"},
		{"want/other-bundle", ExitUsage, "A want list is about another bundle.", "packhof resend --want FILE"},
		{"want/other-gate", ExitUsage, "A want list is of a gate that the bundle is not meant for.", "take the want list of a gate that the bundle is meant for"},
		{"receipt/other-gate", ExitUsage, "A receipt is of a gate that the bundle is not meant for.", "name the receipt of a gate that it is meant for"},
		{"receipt/old-gate", ExitFailed, "A gate does not read what would be written: the format, or a part of it.", "update that gate, and tell of it:  packhof receipt add RECEIPT"},
		{"receipt/older", ExitFailed, "A newer receipt of the same gate is kept already.", "have the gate issue a new one: packhof-gate receipt"},
		{"receipt/unusable", ExitNotGenuine, "What is kept of a gate, in the trust folder, was edited, or its key counts no more.", "bring it back from version control"},
		{"serial/not-sealed", ExitUsage, "A serial was never sealed, so it cannot be sent again.", "packhof export"},
		{"serial/lock-lost", ExitFailed, "The store has lost what a serial was made of.", "bring its packhof.lock back from version control, and run  packhof export"},
		{"want/foreign", ExitUsage, "A want list asks for what is not in the bundle.", "have the gate write a new one:  packhof-gate want CASE FILE"},
		{"want/odd-piece", ExitUsage, "A want list asks for a piece that no volume can have: it does not begin or end where a block does.", "packhof-gate want CASE FILE  writes the list again"},
		{"bundle/bad-pack", ExitDamaged, "A pack of small files and its index contradict each other.", "have the bundle exported again"},
		{"bundle/incomplete-graph", ExitDamaged, "Something that an artifact needs is not in the bundle.", "have the bundle exported again"},
		{"bundle/stray-blob", ExitDamaged, "A blob of the bundle belongs to no artifact.", "have the bundle exported again"},
		{"bundle/name-not-allowed", ExitNotGenuine, "A bundle carries an artifact whose name the trust root does not give to its channel.", "have the sender use a name of its channel, or have the trust root give it this one"},
		{"bundle/revoked", ExitDenied, "A bundle, or something in it, was revoked after it had been signed.", ""},
		{"bundle/trust-missing", ExitNotGenuine, "A bundle lacks its trust documents.", "have the bundle exported again"},
		{"bundle/trust-differs", ExitNotGenuine, "The trust documents in a bundle are not those that its manifest names.", "do not use it; ask the sender"},
	}
}

func trustEntries() []Entry {
	return []Entry{
		{"trust/missing", ExitFailed, "There is no trust root.", "name the folder with --trust, or make a trust root:  packhof trust init"},
		{"trust/exists", ExitUsage, "There is a trust root already.", ""},
		{"trust/gap", ExitFailed, "A version of a trust document is missing between others.", "bring the missing version first"},
		{"trust/no-channel", ExitUsage, "The trust root does not know the channel.", ""},
		{"trust/no-gate", ExitUsage, "The trust root knows no gate.", ""},
		{"trust/gate-known", ExitFailed, "The gate is enrolled already.", ""},
		{"trust/not-a-signer", ExitFailed, "The key is not one of those that may sign bundles of the channel.", ""},
		{"trust/key-expired", ExitFailed, "The key is outside the time in which it may sign.", "make a new key with  packhof key generate, and have it taken into the trust root"},
		{"trust/key-revoked", ExitNotGenuine, "The key is revoked.", "make a new key and have it enrolled"},
		{"trust/fingerprint", ExitNotGenuine, "An enrolment is not the one whose fingerprint people compared.", "compare the fingerprint again, by another way than the medium"},
		{"key/missing", ExitUsage, "A key file is not there.", "make one with  packhof key generate, or correct key in packhof.yaml"},
	}
}

func scanEntries() []Entry {
	return []Entry{
		{"child/absent", ExitFailed, "A helper program is not there.", "put the helper program where it is looked for, or correct its path"},
		{"child/unstartable", ExitFailed, "A helper program cannot be started.", "check owner and mode of the helper program, and that it is one for this machine"},
		{"child/crashed", ExitFailed, "A helper program crashed.", "run the same command again; if it crashes again, leave out what it was looking at"},
		{"child/timeout", ExitFailed, "A helper program ran out of time.", "give it more time in the configuration, or a quieter machine"},
		{"child/memory", ExitFailed, "A helper program wanted more memory than it may have.", "give it more memory in the configuration"},
		{"child/output", ExitFailed, "A helper program wrote too much.", "leave out what it was looking at"},
		{"child/disk", ExitFailed, "A helper program used too much disk.", "free space, or leave out what it was looking at"},
		{"child/cancelled", ExitInterrupted, "A helper program was stopped with us.", "run the same command again"},
		{"child/unsupported", ExitFailed, "This system cannot limit a helper program.", "use Linux"},
		{"sbom/too-large", ExitDamaged, "An SBOM is larger than its limits.", "split the artifact into several"},
		{"sbom/malformed", ExitDamaged, "An SBOM is no CycloneDX document, or an ambiguous one.", "have the bundle exported again"},
		{"sbom/version", ExitDamaged, "An SBOM has another version of CycloneDX than 1.6.", "have the bundle exported again by a current version"},
		{"sbom/subject", ExitDamaged, "An SBOM describes something else.", "have the bundle exported again"},
		{"sbom/time", ExitDamaged, "An SBOM has another time than the lock gives its subject.", "have the bundle exported again"},
		{"sbom/serial", ExitDamaged, "An SBOM has another serial number than follows from subject and time.", "have the bundle exported again"},
		{"sbom/not-canonical", ExitDamaged, "An SBOM is not in the canonical form.", "have the bundle exported again"},
		{"scan/request", ExitFailed, "The scanner was asked something that makes no sense.", "use packhof and packhof-scan of the same version"},
		{"scan/content", ExitDamaged, "The scanner did not find the content that it was to scan.", "run the same command again; look after the disk of the store"},
		{"scan/damaged", ExitDamaged, "The scanner found other content than its digests promise.", "run the same command again; look after the disk of the store"},
		{"scan/unpacked", ExitFailed, "An artifact unpacks to more than the scanner allows.", "split the artifact, or send it without an SBOM: --no-scan"},
		{"scan/disk", ExitFailed, "The scanner ran out of disk.", "free space in the folder of the store"},
		{"scan/failed", ExitFailed, "The scanner could not read an artifact.", "see in the message what it stumbled over; without an SBOM it goes with --no-scan"},
		{"scan/response", ExitFailed, "The scanner answered something that is no answer.", "use packhof and packhof-scan of the same version"},
	}
}

func signingEntries() []Entry {
	return []Entry{
		{"signing/not-a-key", ExitUsage, "A file is no key file, or a damaged one.", "name a key file made by  packhof key generate"},
		{"signing/key-too-large", ExitUsage, "A key file is larger than any key.", "name the key file itself"},
		{"signing/wrong-passphrase", ExitFailed, "The passphrase is wrong, or the key file is damaged; the two cannot be told apart.", "type the passphrase again; if it is right, bring the key file back from a backup"},
		{"signing/no-passphrase", ExitUsage, "A new key needs a passphrase.", "type a passphrase when asked"},
		{"signing/unencrypted-key", ExitUsage, "A private key lies there in the clear.", "give it a passphrase, or make another:  packhof key generate"},
		{"signing/key-algorithm", ExitUsage, "A key is not an ECDSA key on P-256.", "make an ECDSA P-256 key with  packhof key generate"},
		{"signing/signer-failed", ExitFailed, "A signer failed, or gave a signature that does not hold.", "run the same command again; if it fails again, sign with another key"},
		{"signing/bad-signature-file", ExitNotGenuine, "A signature file is not a Sigstore bundle in the one form that is accepted.", "copy the signature from its original again, or have it signed again"},
		{"signing/too-many-signatures", ExitNotGenuine, "There are more signatures than any threshold can need.", "take away the signature files that are not needed"},
		{"signing/bad-root", ExitNotGenuine, "A trust root is malformed, or contradicts the one before.", "copy the trust root from its original again, and compare its fingerprint"},
		{"signing/root-conflict", ExitNotGenuine, "There are two different trust roots with one version: one of the two sides has one that the other does not know.", "find out with the sender which is the right one"},
		{"signing/root-version", ExitNotGenuine, "A trust root is not the next version after the one that is known.", "bring the versions in between first, in order"},
		{"signing/root-signatures", ExitNotGenuine, "A trust root lacks signatures of the old or of the new signers.", "have the missing people sign it; if it was signed, copy it from its original again"},
		{"signing/root-change", ExitUsage, "A change of the trust root would break its rules.", "keep to the rule that is named"},
		{"signing/bad-revocations", ExitNotGenuine, "A revocation list is malformed.", "copy the revocation list from its original again"},
		{"signing/revocations-shrunk", ExitNotGenuine, "A revocation list lacks entries that an earlier one has. It may only grow.", "ask who revokes for the newest list"},
		{"signing/revocations-signatures", ExitNotGenuine, "A revocation list lacks signatures of the role revoke.", "have the missing people sign it; if it was signed, copy it from its original again"},
		{"signing/revocations-change", ExitUsage, "A change of the revocation list makes no sense.", "correct what is named"},
		{"signing/no-trust-root", ExitNotGenuine, "There is no trust root, and so nobody is trusted.", "packhof-gate trust init root-1.json"},
		{"signing/not-genuine", ExitNotGenuine, "No key that the trust root knows has signed these bytes.", "ask the sender, by another way than the medium"},
		{"signing/threshold", ExitNotGenuine, "Fewer people have signed than the trust root asks for.", "have the missing signature made by the sender"},
		{"signing/unknown-role", ExitNotGenuine, "The trust root gives this role to nobody.", "bring a newer version of the trust root"},
		{"signing/expired-key", ExitNotGenuine, "A signature was made with a key outside its time.", "have the sender sign with a key that is valid"},
		{"signing/revoked-key", ExitNotGenuine, "A signature was made with a revoked key.", "ask the sender, by another way than the medium"},
		{"signing/revoked", ExitDenied, "The bytes themselves are revoked.", "use a later one that is not revoked"},
		{"signing/bad-fingerprint", ExitUsage, "Text is no fingerprint, neither in hex nor in words.", "give all of it as it is shown, in hex or in words, in quotation marks"},
	}
}

func registryEntries() []Entry {
	return []Entry{
		{"registry/config", ExitUsage, "The settings of a registry in hosts cannot be right.", "correct hosts in packhof.yaml"},
		{"registry/plain-http", ExitUsage, "A registry speaks http without TLS, which packhof.yaml does not allow for it.", "set hosts.HOST.plainHTTP: true in packhof.yaml, if the network between is trusted"},
		{"registry/credentials", ExitNotLoggedIn, "The credentials in docker's configuration cannot be read.", "repair config.json in DOCKER_CONFIG (or ~/.docker), or run  docker login HOST"},
		{"registry/auth-required", ExitNotLoggedIn, "A registry wants credentials, or does not accept those it got.", "docker login HOST"},
		{"registry/forbidden", ExitNotLoggedIn, "A registry knows who asks and does not allow it.", "have the account that is logged in given the right to pull, or run  docker login HOST  with another"},
		{"registry/not-found", ExitFailed, "A registry has no such repository, tag or digest.", "check the spelling in packhof.yaml; some registries also say so where a log-in is missing"},
		{"registry/unreachable", ExitNoSource, "A registry does not answer: no network, no such name, refused, timed out.", "check the name, the network and HTTPS_PROXY, then run it again"},
		{"registry/tls-unknown-authority", ExitNoSource, "A registry shows a certificate of an authority that this machine does not trust.", "set hosts.HOST.ca in packhof.yaml to the PEM file of the authority"},
		{"registry/tls", ExitNoSource, "A registry shows a certificate that is not valid.", "have the operator of the registry renew its certificate, and check the clock here"},
		{"registry/rate-limited", ExitNoSource, "A registry wants fewer requests.", "wait, or run  docker login HOST  for a higher limit"},
		{"registry/failed", ExitNoSource, "A registry answers with an error of its own.", "run it again later"},
		{"registry/interrupted", ExitNoSource, "A download broke off or stood still, several times.", "run the same command again; what is here is not fetched again"},
		{"registry/protocol", ExitNoSource, "A host does not answer as a registry does.", "check that it is the host of a registry"},
		{"registry/redirect-refused", ExitNoSource, "A registry sent us somewhere where its answer could not be trusted.", "name the registry by the address that it really answers at"},
		{"registry/refused", ExitFailed, "A registry refused a request.", "see in the message what the registry does not like"},
		{"registry/media-type", ExitDamaged, "A registry sends a manifest as another type than it was listed with.", "push the image to the registry again"},
		{"registry/too-large", ExitFailed, "A manifest is larger than any registry should give out.", "leave the image out, or have it built with less in its manifest"},
	}
}
