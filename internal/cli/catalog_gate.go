package cli

// What only the gate, or what it speaks with, can give.

func gateEntries() []Entry {
	return []Entry{
		{"audit/broken", ExitFailed, "The audit log was changed from outside: its entries and hashes do not fit together.", "stop, keep the data directory as it is, and compare it with the last backup"},
		{"audit/contradiction", ExitFailed, "A row of the database is not as the audit log says: somebody edited it. What it is about is not used.", "stop, keep the data directory as it is, and compare it with the last backup"},
		{"gate/history-rolled-back", ExitFailed, "The database of the gate is older than what the gate has done: its audit log is shorter than its anchor says.", "bring the newest gate.db back; if it is lost, bring gate.db and gate.anchor back from one backup"},
		{"gate/history-differs", ExitFailed, "The database of the gate tells another history than the gate has had: its audit log does not fit its anchor.", "bring the newest gate.db back; if it is lost, bring gate.db and gate.anchor back from one backup"},
		{"gate/no-anchor", ExitFailed, "The anchor of the audit log is missing, or this gate has not signed it.", "bring gate.db and gate.anchor back from one backup"},
		{"gate/log-key", ExitFailed, "The key of the audit log is not the one that enrol.json names.", "bring both back from one backup"},
		{"gate/receipt-key", ExitFailed, "The key that signs receipts is missing or no such key.", "bring the folder keys back from a backup"},
		{"case/whole", ExitFailed, "Nothing of a case's bundle is lacking.", ""},
		{"gate/busy", ExitFailed, "Another process works in the gate's data directory, and it is no serve that could be asked.", "wait for it to end"},
		{"gate/no-database", ExitFailed, "The data directory of a gate has lost its database, which holds cases, names and trust, or another file took its place while the gate ran.", "bring it back from a backup"},
		{"gate/database-broken", ExitFailed, "The database of the gate cannot be read, or its tables are not those of a gate.", "bring gate.db and gate.anchor back from one backup"},
		{"gate/database-io", ExitFailed, "The disk of the gate's database gives errors.", "look at the disk"},
		{"gate/read-only", ExitFailed, "The database of the gate cannot be written.", "give the file and its folder back to the user of the gate"},
		{"gate/row-damaged", ExitFailed, "A row of the database cannot be right: a state, a verdict or a digest that there is not, or one part that contradicts another. Nothing is done with what it is about.", "compare gate.db with the last backup"},
		{"gate/none", ExitUsage, "A folder is no data directory of a gate.", "packhof-gate init"},
		{"gate/full", ExitFailed, "There is not enough space for a bundle, of which nothing was copied, or for the database, in which nothing was changed.", "free space, or move the data directory to a larger disk"},
		{"receive/no-bundle", ExitUsage, "A folder holds no bundle.", ""},
		{"receive/incomplete", ExitIncomplete, "Other volumes of the bundle have not come yet.", ""},
		{"receive/lacking", ExitIncomplete, "The set of volumes has come, and content of the bundle that it does not bring is lacking.", "packhof-gate want CASE FILE"},
		{"receive/unreadable", ExitDamaged, "A medium gives errors when it is read.", "try again; else copy the file from its original again"},
		{"receive/path", ExitUsage, "The path of a medium is not UTF-8, so that it cannot be told to the gate.", "mount the medium with iocharset=utf8, or copy the file to a name of plain letters"},
		{"receive/several", ExitUsage, "A folder holds several bundles, and which is meant is not said.", ""},
		{"serve/address", ExitFailed, "The address to serve at cannot be had.", ""},
		{"serve/socket", ExitUsage, "The path of the data directory is too long for a socket.", ""},
		{"serve/certificate", ExitUsage, "The certificate to serve with, or its key, cannot be used.", ""},
		{"password/none", ExitUsage, "An account needs its password, and there is no terminal to ask at.", ""},
		{"password/command", ExitFailed, "The command that should print the password failed.", ""},
		{"account/exists", ExitFailed, "There is an account of that name already.", ""},
		{"account/name", ExitUsage, "Text cannot name an account.", ""},
		{"account/password", ExitUsage, "A password is too short or too long.", ""},
		{"account/roles", ExitUsage, "An account would have no role, or one that does not exist.", ""},
		{"account/unknown", ExitUsage, "There is no account of that name.", "packhof-gate user list"},
		{"login/account-needed", ExitNotLoggedIn, "Decisions need an account: who is merely logged in to the machine cannot decide.", ""},
		{"login/failed", ExitNotLoggedIn, "Name or password is wrong; which of the two is not told.", ""},
		{"login/forbidden", ExitNotLoggedIn, "The roles of the account do not allow it.", ""},
		{"login/needed", ExitNotLoggedIn, "Nobody is logged in, or the session is over.", ""},
		{"login/password-needed", ExitNotLoggedIn, "A decision over the API came with a session only; it needs account and password with the request itself.", "send account and password (HTTP Basic) with the request"},
		{"login/wait", ExitNotLoggedIn, "There were too many failed logins.", "try again later"},
		{"trust/clock", ExitFailed, "By the clock of this machine the trust root is out of date already, so root or clock is wrong.", "set the clock, or ask for a newer root"},
		{"trust/initialised", ExitFailed, "The gate has a trust root already.", ""},
		{"trust/not-initialised", ExitFailed, "The gate has no trust root yet, so it trusts nobody.", ""},
		{"trust/root-fingerprint", ExitNotGenuine, "A trust root is not the one whose fingerprint people compared, or nobody has compared it.", ""},
	}
}

func caseEntries() []Entry {
	return []Entry{
		{"bundle/critical-document", ExitDenied, "A control bundle brings a document that must be applied, and that this version of the gate cannot apply.", "use a later version of packhof-gate"},
		{"audience/other", ExitDenied, "A bundle is meant for other gates.", ""},
		{"freshness/epoch", ExitDenied, "A bundle is of another epoch than the trust root says.", ""},
		{"freshness/equivocation", ExitDenied, "Two different bundles claim the same place in a channel. One of them should not exist.", "ask the sender which is right, by another way than the medium"},
		{"freshness/expired", ExitDenied, "A bundle is too old.", ""},
		{"freshness/older", ExitDenied, "A bundle is older than what was accepted already.", ""},
		{"freshness/too-far", ExitDenied, "A bundle's serial is far ahead of all that came before.", "ask the sender"},
		{"facts/wrong-size", ExitDamaged, "The store holds content of another size than the signed manifest says.", "receive the bundle again"},
		{"policy/denied", ExitDenied, "The policy denies a bundle.", ""},
		{"policy/error", ExitFailed, "The policy could not decide. That blocks as a denial does.", ""},
		{"policy/invalid-config", ExitUsage, "A parameter of the policy is unknown, or of another type than the rules expect.", ""},
		{"policy/invalid-decision", ExitDamaged, "A stored or received decision contradicts itself, or is not about this policy and these facts.", "judge again"},
		{"policy/invalid-input", ExitFailed, "Facts do not fit the closed schema of the policy's input, or contradict each other. Nothing was judged, and that blocks.", ""},
		{"policy/invalid-rule", ExitUsage, "A rule does not compile or breaks the contract of rules in docs/policy.md: the evidence says file and line.", ""},
		{"policy/too-large", ExitFailed, "A policy, its configuration or the facts to be judged are past a limit.", ""},
		{"policy/unknown-file", ExitUsage, "A policy's folder has a file that is neither a rule (NAME.rego), nor a rule's tests (NAME_test.rego), nor config.json. It would seem to count and would not.", "take the file out of the folder"},
		{"policy/untested", ExitFailed, "A test of a rule fails, or a rule has no test that fires and no test that passes, so that nothing shows that it works.", ""},
		{"case/busy", ExitFailed, "Somebody works on the case at this moment.", "try again in a moment"},
		{"case/changed", ExitWaiting, "Something changed after the approval, which does not hold any more.", ""},
		{"case/choice", ExitUsage, "A decision is neither approve nor reject.", ""},
		{"case/decided-already", ExitFailed, "The same person cannot approve twice.", ""},
		{"case/live", ExitFailed, "Names of the case are published at a destination, so it cannot be rejected any more.", "bring a bundle that replaces it"},
		{"case/no-review", ExitFailed, "The case has not been judged, so there is nothing to decide on.", ""},
		{"case/not-confirmed", ExitFailed, "Nobody confirmed the decision, so nothing was decided.", ""},
		{"case/not-waiting", ExitFailed, "The case waits for no decision.", ""},
		{"case/own", ExitNotLoggedIn, "Nobody decides on what they brought in themselves.", ""},
		{"case/reason", ExitUsage, "A decision lacks its reason, or the reason is too long, or nobody can read it.", ""},
		{"case/rejected", ExitRejected, "A person has rejected the case.", ""},
		{"case/review-changed", ExitFailed, "What is to be decided on is not what was read.", ""},
		{"case/unfinished", ExitFailed, "The case is not judged yet.", ""},
		{"case/unknown", ExitUsage, "There is no case of that number.", "packhof-gate list"},
		{"case/waiting", ExitWaiting, "The case waits for approval.", ""},
	}
}

func destinationEntries() []Entry {
	return []Entry{
		{"depot/not-found", ExitFailed, "There is no such thing among what was released.", ""},
		{"depot/withdrawn", ExitDenied, "Something was withdrawn after it had been released.", ""},
		{"destination/collision", ExitUsage, "Two artifacts would have the same name at a destination.", ""},
		{"destination/config", ExitUsage, "The settings of a destination cannot be right.", ""},
		{"destination/mismatch", ExitNoDestination, "What is at a destination is not what was loaded, or is not there.", "release the case again"},
		{"destination/name-taken", ExitNoDestination, "A name that the bundle would set belongs to another channel.", "give the destination another naming, or have one channel carry it"},
		{"destination/none", ExitFailed, "No destination accepts an artifact of the bundle, so nobody could pull it.", "add its kind to what a destination accepts, in gate.yaml"},
		{"destination/refused", ExitNoDestination, "A destination would not take something: no right to it, no space, a name that cannot be, or something of others in its place.", ""},
		{"destination/unreachable", ExitNoDestination, "A destination does not answer, or not as it should.", ""},
	}
}

func requestEntries() []Entry {
	return []Entry{
		{"request/browser-only", ExitUsage, "Sessions are for browsers.", "send account and password with the request that needs them"},
		{"request/busy", ExitFailed, "The gate is answering others with documents about large cases; the header Retry-After says when to ask again.", "ask again in a few seconds"},
		{"request/console-only", ExitUsage, "Files of the gate's machine are named at its console only, and releases are started there where the server does not run them.", "on the gate's machine:  packhof-gate receive FILE"},
		{"request/content-type", ExitUsage, "The body of a request has another content type than it must have.", "send application/json"},
		{"request/cross-origin", ExitUsage, "Another site sent this request in somebody's name.", "open the gate's own address"},
		{"request/invalid", ExitUsage, "A request cannot be read, or has what does not belong there; nothing is guessed.", ""},
		{"request/method", ExitUsage, "This cannot be done with this address; the header Allow says what can.", "see /api/v1/openapi.json"},
		{"request/not-found", ExitUsage, "There is nothing at this address.", "see /api/v1/openapi.json"},
		{"request/too-large", ExitUsage, "The body of a request is larger than anything that belongs there.", ""},
	}
}

func s3Entries() []Entry {
	return []Entry{
		{"s3/clock", ExitNoDestination, "The clock here and the one of an S3 server differ too much for signed requests.", "set both clocks"},
		{"s3/config", ExitUsage, "The settings of an S3 server cannot be right.", ""},
		{"s3/content", ExitDamaged, "Content on its way into an object is not what was promised, by size or digest. No object was made.", ""},
		{"s3/credentials", ExitNotLoggedIn, "An S3 server does not accept the access key or the secret key.", ""},
		{"s3/denied", ExitNotLoggedIn, "An S3 server knows who asks and does not allow it.", ""},
		{"s3/exists", ExitFailed, "An object of this name is there already, and it must not be replaced.", ""},
		{"s3/failed", ExitNoDestination, "An S3 server answers with an error of its own, several times.", ""},
		{"s3/full", ExitNoDestination, "An S3 server, or the quota of a bucket, is full.", ""},
		{"s3/interrupted", ExitNoDestination, "A download from an S3 server broke off or stood still.", "run the same command again"},
		{"s3/key", ExitUsage, "A name cannot be the key of an object: servers would refuse it or read it differently.", ""},
		{"s3/metadata", ExitUsage, "Metadata of an object cannot be sent: other than printable ASCII, or too long.", ""},
		{"s3/no-bucket", ExitNoDestination, "An S3 server has no such bucket; buckets are never made by us.", "make the bucket on the server, or correct its name in the settings"},
		{"s3/not-found", ExitFailed, "A bucket has no such object.", ""},
		{"s3/plain-http", ExitUsage, "An S3 server speaks http without TLS, which its settings do not allow.", ""},
		{"s3/protocol", ExitNoDestination, "A host does not answer as an S3 server does.", ""},
		{"s3/refused", ExitFailed, "An S3 server refused a request.", ""},
		{"s3/region", ExitUsage, "A bucket belongs to another region than the one in the settings.", ""},
		{"s3/spoilt", ExitDamaged, "An S3 server received, or holds, other bytes than were sent. No such object was left.", ""},
		{"s3/stalled", ExitNoDestination, "An S3 server took no more bytes, or did not begin to answer, for too long.", ""},
		{"s3/tls", ExitNoDestination, "An S3 server shows a certificate that is not valid.", ""},
		{"s3/tls-unknown-authority", ExitNoDestination, "An S3 server shows a certificate of an authority that this machine does not trust.", ""},
		{"s3/too-large", ExitFailed, "Content is larger than an S3 object can be.", ""},
		{"s3/unreachable", ExitNoDestination, "An S3 server does not answer: no network, no such name, refused, broke off.", ""},
	}
}
