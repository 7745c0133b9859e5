package cli

// GermanEntry is what an Entry says, in German: for the screens and the
// terminal of a gate.
type GermanEntry struct {
	Code    string
	Meaning string
	Remedy  string // "" where the error itself, or nobody, knows one
}

// German finds the German words of a code.
func German(code string) (GermanEntry, bool) {
	for _, entries := range [][]GermanEntry{germanGeneral(), germanBundle(), germanTrust(), germanHelpers(), germanGate(), germanCase(), germanPolicy(), germanDestination(), germanRequest(), germanS3()} {
		for _, e := range entries {
			if e.Code == code {
				return e, true
			}
		}
	}
	return GermanEntry{}, false
}

func germanGeneral() []GermanEntry {
	return []GermanEntry{
		{"usage", "Die Befehlszeile stimmt nicht.", ""},
		{"failed", "Etwas ist gescheitert, das keinen eigenen Code hat; was es war, sagt der Wortlaut.", ""},
		{"interrupted", "Die Arbeit wurde abgebrochen. Unter einem endgültigen Namen ist nichts Halbes zurückgeblieben.", "denselben Befehl noch einmal ausführen; er macht weiter, wo er kann"},
		{"config/missing", "Eine Konfigurationsdatei fehlt.", ""},
		{"config/unreadable", "Eine Konfigurationsdatei ist keine gewöhnliche Datei oder zu groß.", ""},
		{"config/syntax", "Eine Konfigurationsdatei ist kein YAML oder nutzt, was von YAML nicht angenommen wird.", ""},
		{"config/unknown-key", "Eine Konfigurationsdatei enthält einen Schlüssel, den niemand kennt. Keiner wird übergangen, denn ein verschriebener täte stillschweigend nichts.", ""},
		{"config/invalid", "Ein Wert in einer Konfigurationsdatei kann nicht stimmen.", ""},
		{"config/bad-ca", "Eine Datei sollte eine Zertifizierungsstelle enthalten und tut es nicht.", ""},
		{"config/exists", "Eine Datei, die angelegt würde, gibt es schon, und überschrieben wird nichts.", ""},
		{"project/busy", "Ein anderes packhof arbeitet im selben Ordner.", "warten, bis es fertig ist"},
		{"passphrase/none", "Ein Schlüssel braucht seine Passphrase, und niemand ist am Terminal.", ""},
		{"passphrase/command", "Der Befehl, der die Passphrase ausgeben soll, ist gescheitert.", ""},
		{"passphrase/differ", "Die Passphrase wurde zweimal verschieden eingegeben; ein Schlüssel wurde nicht erzeugt.", "den Befehl noch einmal ausführen, und zweimal dasselbe eingeben"},
		{"disk/full", "Ein Datenträger dieses Rechners ist voll. Unter einem endgültigen Namen ist nichts Halbes zurückgeblieben.", "Platz schaffen"},
		{"disk/file-too-large", "Ein Dateisystem oder eine Grenze dieses Rechners nimmt keine Datei dieser Größe an.", "ein anderes Dateisystem nehmen, oder die Grenze anheben (ulimit -f)"},
		{"disk/read-only", "Der Ort, an den geschrieben werden soll, ist schreibgeschützt.", "in einen anderen Ordner schreiben"},
		{"file/permission", "Das Betriebssystem erlaubt es nicht.", "Eigentümer und Rechte der Datei prüfen"},
		{"file/not-plain", "Wo eine eigene Datei liegen sollte, liegt ein Ordner, eine Pipe, ein Gerät oder ein Verweis, oder eine viel zu große Datei.", "die Datei aus einer Sicherung zurückholen"},
		{"file/missing", "Eine Datei gibt es nicht.", "den Pfad prüfen"},
		{"digest/malformed", "Ein Text, der eine Prüfsumme sein soll, ist keine.", "sha256: und 64 kleine Hexziffern schreiben"},
		{"content/corrupt", "Bytes sind nicht die, die ihre Prüfsumme verspricht. Sie wurden nicht behalten.", "die Lieferung erneut einbringen"},
		{"oci/too-many-entries", "Ein Artefakt nennt mehr Dateien, als eines haben kann.", "vom Absender auf mehrere Artefakte aufteilen lassen"},
		{"oci/foreign-layer", "Ein Image hat eine Schicht, die Clients von einem anderen Server holen würden, oder die nicht weitergegeben werden darf.", "das Artefakt vom Absender weglassen lassen"},
		{"oci/malformed", "Das Manifest eines Images ist nicht so, wie die OCI-Spezifikation es verlangt.", ""},
	}
}

func germanBundle() []GermanEntry {
	return []GermanEntry{
		{"format/malformed", "Ein Dokument ist kein strenges JSON seines Formats.", "den Absender bitten, es neu zu erstellen"},
		{"format/invalid", "Ein Dokument widerspricht sich selbst oder seinem Format.", "den Absender bitten, es neu zu erstellen"},
		{"format/unknown", "Ein Dokument hat ein Format, das diese Version nicht liest.", "eine neuere Version verwenden"},
		{"format/too-large", "Ein Dokument ist größer, als sein Format erlaubt.", ""},
		{"format/critical-extension", "Eine Lieferung braucht etwas, das diese Version nicht kennt.", "eine neuere Version verwenden"},
		{"volume/encrypted", "Eine Datei ist verschlüsselt, und es gibt keinen Schlüssel, um sie zu öffnen.", "am Gate öffnen, für das sie bestimmt ist"},
		{"volume/other-recipient", "Eine Datei ist verschlüsselt, und nicht für dieses Gate. Ein beschädigter Kopf kann genauso aussehen.", "für dieses Gate ausführen lassen; wurde sie das, vom Original noch einmal kopieren"},
		{"volume/damaged", "Bytes der Datei fehlen oder sind nicht die richtigen.", "den Datenträger erneut beschreiben lassen"},
		{"volume/unreadable", "Ein Datenträger gibt die Bytes einer Datei nicht her: Er gibt Fehler oder wurde entfernt.", "ihn wieder einlegen und es noch einmal versuchen; sonst die Datei noch einmal vom Original kopieren"},
		{"volume/foreign", "Teile der Datei gehören zu verschiedenen Lieferungen.", "die Datei noch einmal vom Original kopieren"},
		{"volume/not-a-bundle", "Eine Datei ist keine Lieferung.", "die Datei angeben, die auf .tar oder .age endet"},
		{"volume/not-a-file", "Ein Pfad ist keine Datei.", ""},
		{"volume/not-complete", "Datenträgerteile einer Lieferung fehlen.", ""},
		{"volume/head-differs", "Die Teile einer Lieferung bringen verschiedene Vertrauensdokumente mit.", "den Absender fragen, welche gelten"},
		{"volume/none", "Ein Ordner enthält keine Lieferung.", "die Datei nennen"},
		{"volume/several", "Wo eine Lieferung erwartet wird, liegen mehrere.", "eine der Dateien nennen"},
		{"volume/crowded", "Ein Ordner enthält zu viele Dateien, um darin nach Teilen einer Lieferung zu suchen.", "die Datei nennen"},
		{"volume/size-malformed", "Die Größe der Teile ist nicht so geschrieben, dass sie verstanden wird.", ""},
		{"volume/too-small", "Die Größe der Teile lässt keinen Platz für Inhalt.", ""},
		{"volume/too-many", "Bei dieser Größe entstünden mehr Teile, als eine Lieferung haben kann.", ""},
		{"volume/pieces-wrong", "Die Stücke eines Blobs, die in mehreren Datenträgerteilen kamen, ergeben diesen Blob nicht.", "alle Teile noch einmal einbringen; welcher nicht stimmt, ist nicht zu erkennen"},
		{"volume/signatures-differ", "Neben den Teilen liegen mehrere Unterschriften, die denselben Schlüssel nennen; welche gilt, sagt hier niemand.", "den Vertrauensanker nennen: --trust ORDNER"},
		{"volume/no-such", "Einen solchen Datenträgerteil hat die Sendung nicht.", ""},
		{"volume/no-such-set", "Eine Sendung dieser Kennung ging hier nicht hinaus, oder es gibt mehrere, die so beginnen, oder sie lässt sich nicht wieder so erstellen.", "die Sendung so nennen, wie packhof export sie ausgegeben hat"},
		{"bundle/bad-pack", "Ein Bündel kleiner Dateien und sein Verzeichnis widersprechen sich.", "die Lieferung neu erstellen lassen"},
		{"bundle/incomplete-graph", "Etwas, das ein Artefakt braucht, ist nicht in der Lieferung.", "die Lieferung neu erstellen lassen"},
		{"bundle/stray-blob", "Ein Blob der Lieferung gehört zu keinem Artefakt.", "die Lieferung neu erstellen lassen"},
		{"bundle/name-not-allowed", "Die Lieferung enthält ein Artefakt, dessen Namen der Vertrauensanker ihrem Kanal nicht gibt.", ""},
		{"bundle/revoked", "Die Lieferung, oder etwas darin, wurde nach der Unterschrift widerrufen.", ""},
		{"bundle/trust-missing", "Der Lieferung fehlen ihre Vertrauensdokumente.", "die Lieferung neu erstellen lassen"},
		{"bundle/trust-differs", "Die Vertrauensdokumente in der Lieferung sind nicht die, die ihr Manifest nennt.", "nicht verwenden, den Absender fragen"},
		{"bundle/critical-document", "Eine Steuerlieferung bringt ein Dokument, das angewendet werden muss und das diese Version des Gates nicht anwenden kann.", "eine spätere Version von packhof-gate verwenden"},
		{"audience/other", "Die Lieferung ist für andere Gates bestimmt.", "zu dem Gate bringen, für das sie bestimmt ist, oder den Absender bitten, dieses Gate aufzunehmen: packhof trust add-gate enrol.json"},
		{"freshness/epoch", "Die Lieferung hat eine andere Epoche, als der Vertrauensanker sagt.", ""},
		{"freshness/equivocation", "Zwei verschiedene Lieferungen beanspruchen denselben Platz in einem Kanal. Eine davon dürfte es nicht geben.", "den Absender auf einem anderen Weg als dem Datenträger fragen, welche die richtige ist"},
		{"freshness/expired", "Die Lieferung ist zu alt.", "den Absender um eine neue bitten"},
		{"freshness/older", "Die Lieferung ist älter als das, was schon angenommen wurde.", ""},
		{"freshness/too-far", "Die laufende Nummer der Lieferung liegt weit vor allem, was bisher kam.", "den Absender fragen"},
		{"facts/wrong-size", "Im Speicher liegt Inhalt von anderer Größe, als das unterschriebene Manifest sagt.", "die Lieferung erneut einbringen"},
	}
}

func germanTrust() []GermanEntry {
	return []GermanEntry{
		{"trust/missing", "Es gibt keinen Vertrauensanker.", ""},
		{"trust/exists", "Es gibt schon einen Vertrauensanker.", ""},
		{"trust/gap", "Zwischen anderen fehlt eine Version eines Vertrauensdokuments.", "die fehlende Version zuerst aufnehmen"},
		{"trust/no-channel", "Der Vertrauensanker kennt den Kanal nicht.", ""},
		{"trust/no-gate", "Der Vertrauensanker kennt kein Gate.", ""},
		{"trust/gate-known", "Das Gate ist schon aufgenommen.", ""},
		{"trust/not-a-signer", "Der Schlüssel gehört nicht zu denen, die Lieferungen dieses Kanals unterschreiben dürfen.", ""},
		{"trust/key-expired", "Der Schlüssel liegt außerhalb der Zeit, in der er unterschreiben darf.", ""},
		{"trust/key-revoked", "Der Schlüssel ist widerrufen.", "einen neuen Schlüssel erzeugen und aufnehmen lassen"},
		{"trust/fingerprint", "Ein Aufnahmeantrag (enrol.json) ist nicht der, dessen Fingerabdruck verglichen wurde.", ""},
		{"trust/clock", "Nach der Uhr dieses Rechners ist der Vertrauensanker schon abgelaufen; also stimmt er nicht oder die Uhr nicht.", "die Uhr stellen, oder einen neueren Vertrauensanker anfordern"},
		{"trust/initialised", "Das Gate hat schon einen Vertrauensanker.", "eine spätere Version aufnehmen:  packhof-gate trust update DATEI"},
		{"trust/not-initialised", "Das Gate hat noch keinen Vertrauensanker und vertraut deshalb niemandem.", "packhof-gate trust init root-1.json"},
		{"trust/root-fingerprint", "Der Vertrauensanker ist nicht der, dessen Fingerabdruck verglichen wurde, oder niemand hat ihn verglichen.", "den Fingerabdruck mit dem vergleichen, den  packhof trust show  draußen zeigt"},
		{"key/missing", "Eine Schlüsseldatei gibt es nicht.", ""},
		{"signing/not-a-key", "Eine Datei ist keine Schlüsseldatei, oder sie ist beschädigt.", ""},
		{"signing/key-too-large", "Eine Schlüsseldatei ist größer als jeder Schlüssel.", ""},
		{"signing/wrong-passphrase", "Die Passphrase ist falsch, oder die Schlüsseldatei ist beschädigt; unterscheiden lässt sich das nicht.", ""},
		{"signing/no-passphrase", "Ein neuer Schlüssel braucht eine Passphrase.", ""},
		{"signing/unencrypted-key", "Ein privater Schlüssel liegt unverschlüsselt da.", ""},
		{"signing/key-algorithm", "Ein Schlüssel ist kein ECDSA-Schlüssel auf P-256.", ""},
		{"signing/signer-failed", "Ein Unterzeichner ist gescheitert, oder seine Unterschrift hält nicht.", ""},
		{"signing/bad-signature-file", "Eine Unterschriftsdatei hat nicht die eine Form, die angenommen wird.", ""},
		{"signing/too-many-signatures", "Es gibt mehr Unterschriften, als irgendwo verlangt sein können.", ""},
		{"signing/bad-root", "Ein Vertrauensanker ist fehlerhaft oder widerspricht dem vorigen.", ""},
		{"signing/root-conflict", "Es gibt zwei verschiedene Vertrauensanker derselben Version: Eine der beiden Seiten hat einen, den die andere nicht kennt.", "mit dem Absender klären, welcher gilt"},
		{"signing/root-version", "Ein Vertrauensanker ist nicht die nächste Version nach der bekannten.", ""},
		{"signing/root-signatures", "Einem Vertrauensanker fehlen Unterschriften der alten oder der neuen Unterzeichner.", ""},
		{"signing/root-change", "Eine Änderung des Vertrauensankers verstieße gegen seine Regeln.", ""},
		{"signing/bad-revocations", "Eine Widerrufsliste ist fehlerhaft.", ""},
		{"signing/revocations-shrunk", "Einer Widerrufsliste fehlen Einträge, die eine frühere hat. Sie darf nur wachsen.", ""},
		{"signing/revocations-signatures", "Einer Widerrufsliste fehlen Unterschriften der Rolle revoke.", ""},
		{"signing/revocations-change", "Eine Änderung der Widerrufsliste ergibt keinen Sinn.", ""},
		{"signing/no-trust-root", "Es gibt keinen Vertrauensanker; also wird niemandem vertraut.", "packhof-gate trust init root-1.json"},
		{"signing/not-genuine", "Kein Schlüssel, den der Vertrauensanker kennt, hat diese Bytes unterschrieben.", "den Absender auf einem anderen Weg als dem Datenträger fragen"},
		{"signing/threshold", "Es haben weniger Personen unterschrieben, als der Vertrauensanker verlangt.", "die fehlende Unterschrift beim Absender einholen"},
		{"signing/unknown-role", "Der Vertrauensanker gibt diese Rolle niemandem.", ""},
		{"signing/expired-key", "Eine Unterschrift stammt von einem Schlüssel außerhalb seiner Zeit.", "den Absender bitten, mit einem gültigen Schlüssel zu unterschreiben"},
		{"signing/revoked-key", "Eine Unterschrift stammt von einem widerrufenen Schlüssel.", "den Absender fragen, auf einem anderen Weg als dem Datenträger"},
		{"signing/revoked", "Diese Bytes selbst sind widerrufen.", ""},
		{"signing/bad-fingerprint", "Ein Text ist kein Fingerabdruck, weder in Hexziffern noch in Wörtern.", "ihn ganz angeben, wie er gezeigt wird, in Hexziffern oder in Wörtern, in Anführungszeichen"},
	}
}

func germanHelpers() []GermanEntry {
	return []GermanEntry{
		{"child/absent", "Ein Hilfsprogramm gibt es nicht.", ""},
		{"child/unstartable", "Ein Hilfsprogramm lässt sich nicht starten.", ""},
		{"child/crashed", "Ein Hilfsprogramm ist abgestürzt.", ""},
		{"child/timeout", "Einem Hilfsprogramm ist die Zeit ausgegangen.", ""},
		{"child/memory", "Ein Hilfsprogramm wollte mehr Arbeitsspeicher, als es haben darf.", ""},
		{"child/output", "Ein Hilfsprogramm hat zu viel geschrieben.", ""},
		{"child/disk", "Ein Hilfsprogramm hat zu viel Plattenplatz belegt.", ""},
		{"child/cancelled", "Ein Hilfsprogramm wurde zusammen mit uns angehalten.", ""},
		{"child/unsupported", "Dieses System kann einem Hilfsprogramm keine Grenzen setzen.", ""},
		{"sbom/too-large", "Eine Software-Stückliste ist größer als erlaubt.", ""},
		{"sbom/malformed", "Eine Software-Stückliste ist kein CycloneDX-Dokument, oder ein mehrdeutiges.", ""},
		{"sbom/version", "Eine Software-Stückliste hat eine andere Version von CycloneDX als 1.6.", ""},
		{"sbom/subject", "Eine Software-Stückliste beschreibt etwas anderes.", ""},
		{"sbom/time", "Eine Software-Stückliste hat eine andere Zeit als die, die für ihren Gegenstand festliegt.", ""},
		{"sbom/serial", "Eine Software-Stückliste hat eine andere Seriennummer, als aus Gegenstand und Zeit folgt.", ""},
		{"sbom/not-canonical", "Eine Software-Stückliste hat nicht die kanonische Form.", ""},
	}
}

func germanGate() []GermanEntry {
	return []GermanEntry{
		{"audit/broken", "Das Prüfprotokoll wurde von außen verändert: Einträge und Prüfsummen passen nicht zusammen.", "aufhören, das Datenverzeichnis so lassen, wie es ist, und mit der letzten Sicherung vergleichen"},
		{"gate/busy", "Ein anderer Prozess arbeitet im Datenverzeichnis des Gates; das kann immer nur einer.", "warten, bis er fertig ist"},
		{"audit/contradiction", "Eine Zeile der Datenbank steht nicht so im Prüfprotokoll: jemand hat sie geändert. Was sie betrifft, wird nicht verwendet.", "aufhören, das Datenverzeichnis so lassen, wie es ist, und mit der letzten Sicherung vergleichen"},
		{"gate/history-rolled-back", "Die Datenbank des Gates ist älter als das, was das Gate getan hat: ihr Prüfprotokoll ist kürzer, als ihr Anker sagt.", "die neueste gate.db zurückholen; ist sie verloren, gate.db und gate.anchor aus einer Sicherung zurückholen"},
		{"gate/history-differs", "Die Datenbank des Gates erzählt eine andere Geschichte, als das Gate hatte: ihr Prüfprotokoll passt nicht zum Anker.", "die neueste gate.db zurückholen; ist sie verloren, gate.db und gate.anchor aus einer Sicherung zurückholen"},
		{"gate/history-unsigned", "Das Prüfprotokoll geht hinter seinem Anker mit Einträgen weiter, die dieses Gate nicht unterschrieben hat: jemand hat sie hinzugefügt, oder der unterschriebene Kopf in der Datenbank ging verloren.", "die neueste gate.db zurückholen; ist sie verloren, gate.db und gate.anchor aus einer Sicherung zurückholen"},
		{"gate/anchor-behind", "Was verlangt war, ist getan und aufgeschrieben; nur der Anker des Prüfprotokolls ließ sich danach nicht schreiben. Der nächste Schritt oder ein Neustart holt ihn nach.", "im Datenverzeichnis Platz schaffen und es dem Benutzer des Gates geben"},
		{"gate/no-anchor", "Der Anker des Prüfprotokolls fehlt, oder dieses Gate hat ihn nicht unterschrieben.", "gate.db und gate.anchor aus einer Sicherung zurückholen"},
		{"gate/log-key", "Der Schlüssel des Prüfprotokolls ist nicht der, den enrol.json nennt.", "beide aus einer Sicherung zurückholen"},
		{"gate/identity", "Der Schlüssel, der verschlüsselte Dateien öffnet, fehlt oder ist nicht der aus enrol.json.", "den Ordner keys aus einer Sicherung zurückholen"},
		{"gate/receipt-key", "Der Schlüssel, der Belege unterschreibt, ist keiner oder nicht der, den enrol.json nennt.", "beide aus einer Sicherung zurückholen"},
		{"case/whole", "Von der Lieferung des Vorgangs fehlt nichts.", ""},
		{"gate/no-database", "Dem Datenverzeichnis eines Gates fehlt die Datenbank mit Vorgängen, Namen und Vertrauen, oder eine andere Datei nahm ihren Platz ein, während das Gate lief.", "aus einer Sicherung zurückholen"},
		{"gate/foreign-log", "Neben der Datenbank liegt das Schreibprotokoll einer anderen, etwa das der neueren Datenbank, über die eine Sicherung kopiert wurde. SQLite schriebe es in die Datei; darum wurde nichts geöffnet.", "wurde gate.db aus einer Sicherung geholt: gate.db-wal und gate.db-shm löschen; sonst die neueste gate.db zurückholen"},
		{"gate/database-overwritten", "Über die Datenbank wurde eine andere Datei kopiert, während das Gate lief. Es hat nichts hineingeschrieben und serve beendet; was noch nicht in der Datei stand, liegt daneben.", "die neueste gate.db zurückholen; ist sie verloren, gate.db und gate.anchor aus einer Sicherung zurückholen"},
		{"gate/database-broken", "Die Datenbank des Gates ist nicht lesbar, oder ihre Tabellen sind nicht die eines Gates.", "gate.db und gate.anchor aus derselben Sicherung zurückholen"},
		{"gate/database-io", "Der Datenträger der Datenbank des Gates meldet Fehler.", "den Datenträger prüfen"},
		{"gate/read-only", "In die Datenbank des Gates lässt sich nicht schreiben.", "Datei und Ordner wieder dem Benutzer des Gates geben"},
		{"gate/newer-database", "Die Datenbank des Gates stammt von einer neueren Version von packhof-gate. Daran wurde nichts geändert.", "das neuere packhof-gate starten, oder gate.db und gate.anchor aus einer Sicherung von davor zurückholen"},
		{"gate/depot-index", "Das Verzeichnis, über das das Depot Inhalte und Dateien findet, hat andere Zeilen als die geladenen Artefakte ergeben. Was davon betroffen ist, wird nicht ausgegeben.", "packhof-gate serve neu starten: es legt das Verzeichnis neu an"},
		{"gate/row-damaged", "Eine Zeile der Datenbank kann nicht stimmen: ein Stand, ein Ergebnis oder eine Prüfsumme, die es nicht gibt, oder ein Teil, der einem anderen widerspricht. Mit dem, wovon sie handelt, geschieht nichts.", "gate.db mit der letzten Sicherung vergleichen; beim Kopf eines Vorgangs: die Lieferung erneut einbringen"},
		{"gate/none", "Ein Ordner ist kein Datenverzeichnis eines Gates.", "eines anlegen mit  packhof-gate init, oder das richtige nennen mit --data"},
		{"gate/full", "Für die Lieferung, von der nichts kopiert wurde, oder für die Datenbank, in der nichts geändert wurde, ist nicht genug Platz.", "Platz schaffen, oder das Datenverzeichnis auf einen größeren Datenträger legen"},
		{"receive/no-bundle", "Ein Ordner enthält keine Lieferung.", "die Datei nennen, die auf .tar oder .age endet, oder den Ordner, in dem sie liegt"},
		{"receive/incomplete", "Andere Datenträgerteile der Lieferung fehlen noch.", "den Datenträger mit dem fehlenden Teil einlegen und noch einmal einbringen; was schon da ist, bleibt"},
		{"receive/lacking", "Die Sendung ist vollständig da, und es fehlt noch Inhalt der Lieferung, den sie nicht mitbringt.", "aufschreiben lassen, was fehlt, und es draußen nachfordern: packhof-gate want VORGANG DATEI"},
		{"receive/unreadable", "Der Datenträger gibt beim Lesen Fehler.", "es noch einmal versuchen; sonst die Datei noch einmal vom Original kopieren"},
		{"receive/path", "Der Pfad des Datenträgers ist nicht in UTF-8, also lässt er sich dem Gate nicht sagen.", "den Datenträger mit iocharset=utf8 einhängen, oder die Datei unter einem Namen aus einfachen Buchstaben ablegen"},
		{"receive/several", "Ein Ordner enthält mehrere Lieferungen, und welche gemeint ist, ist nicht gesagt.", "eine der Dateien nennen"},
		{"serve/address", "Die Adresse ist nicht zu haben: belegt, oder nicht von diesem Rechner.", "eine andere wählen mit --listen, oder in gate.yaml"},
		{"serve/socket", "Der Pfad des Datenverzeichnisses ist zu lang für einen Socket.", "das Datenverzeichnis an einen kürzeren Pfad legen"},
		{"serve/ended", "serve, das Teile annahm, endete, während ein Befehl auf weitere wartete. Was kam, bleibt.", "serve wieder starten, oder ohne es weitermachen: packhof-gate receive"},
		{"serve/certificate", "Das Zertifikat für serve, oder sein Schlüssel, ist nicht zu gebrauchen.", "tls in gate.yaml berichtigen"},
		{"password/none", "Ein Konto braucht sein Passwort, und niemand ist am Terminal.", ""},
		{"password/command", "Der Befehl, der das Passwort ausgeben soll, ist gescheitert.", ""},
		{"password/differ", "Das Passwort wurde zweimal verschieden eingegeben; es gilt noch, was vorher galt.", "den Befehl noch einmal ausführen, und zweimal dasselbe eingeben"},
		{"account/exists", "Ein Konto dieses Namens gibt es schon.", ""},
		{"account/name", "Der Text taugt nicht als Name eines Kontos.", ""},
		{"account/password", "Ein Passwort ist zu kurz oder zu lang.", ""},
		{"account/roles", "Ein Konto hätte keine Rolle, oder eine, die es nicht gibt.", ""},
		{"account/unknown", "Ein Konto dieses Namens gibt es nicht.", "packhof-gate user list"},
		{"login/account-needed", "Entscheidungen brauchen ein Konto: Wer nur am Rechner angemeldet ist, kann nicht entscheiden.", ""},
		{"login/failed", "Name oder Passwort ist falsch; welches von beiden, wird nicht gesagt.", "es noch einmal versuchen; ein neues Passwort setzt  packhof-gate user passwd NAME"},
		{"login/forbidden", "Die Rollen des Kontos erlauben das nicht.", "jemanden bitten, der die Rolle hat"},
		{"login/needed", "Niemand ist angemeldet, oder die Sitzung ist vorbei.", "anmelden"},
		{"login/password-needed", "Eine Entscheidung über die API kam nur mit einer Sitzung; sie braucht Konto und Passwort in der Anfrage selbst.", "Konto und Passwort (HTTP Basic) mit der Anfrage senden"},
		{"login/wait", "Es gab zu viele Fehlversuche.", "später noch einmal versuchen"},
	}
}

func germanCase() []GermanEntry {
	return []GermanEntry{
		{"case/busy", "Jemand arbeitet gerade an dem Vorgang.", "gleich noch einmal versuchen"},
		{"case/changed", "Nach der Freigabe hat sich etwas geändert; sie gilt nicht mehr.", "den Vorgang erneut prüfen"},
		{"case/choice", "Eine Entscheidung ist weder Freigabe noch Ablehnung.", ""},
		{"case/decided-already", "Dieselbe Person kann nicht zweimal freigeben.", "jemand anderes gibt frei"},
		{"case/live", "Namen des Vorgangs sind an einem Ziel gesetzt; ablehnen lässt er sich nicht mehr.", "eine Lieferung bringen, die ihn ersetzt"},
		{"case/no-review", "Der Vorgang ist noch nicht beurteilt; es gibt noch nichts zu entscheiden.", ""},
		{"case/not-accepted", "Die Lieferung des Vorgangs wurde nicht angenommen; von ihr ist nichts da, und nichts von ihr kann fehlen.", "packhof-gate show VORGANG  sagt warum"},
		{"case/not-confirmed", "Niemand hat die Entscheidung bestätigt; also wurde nichts entschieden.", "die Frage mit ja beantworten; wo niemand gefragt werden kann, mit  packhof-gate show N  lesen und  --yes --review PRÜFCODE  angeben"},
		{"case/not-waiting", "Der Vorgang wartet auf keine Entscheidung.", ""},
		{"case/own", "Niemand entscheidet über das, was er selbst eingebracht hat.", "jemand anderes entscheidet"},
		{"case/reason", "Einer Entscheidung fehlt die Begründung, oder diese ist zu lang, oder niemand kann sie lesen.", "mit  --reason \"…\"  in einem Satz begründen"},
		{"case/rejected", "Eine Person hat den Vorgang abgelehnt.", ""},
		{"case/review-changed", "Was zu entscheiden ist, ist nicht mehr das, was gelesen wurde.", "den Vorgang erneut lesen"},
		{"case/unfinished", "Der Vorgang ist noch nicht beurteilt.", "die Lieferung erneut einbringen; es geht weiter, wo es aufgehört hat"},
		{"case/unknown", "Diesen Vorgang gibt es nicht.", "packhof-gate list"},
		{"case/waiting", "Der Vorgang wartet auf eine Freigabe.", ""},
	}
}

func germanPolicy() []GermanEntry {
	return []GermanEntry{
		{"policy/denied", "Die Richtlinie lässt die Lieferung nicht zu.", "der Absender lässt weg oder ersetzt, was als Sperrbefund genannt ist"},
		{"policy/error", "Die Richtlinie kam zu keinem Ergebnis. Das sperrt ebenso.", ""},
		{"policy/invalid-config", "Ein Parameter der Richtlinie ist unbekannt oder von anderer Art, als die Regeln erwarten.", "config.json im Ordner der Richtlinie berichtigen"},
		{"policy/invalid-decision", "Ein Ergebnis widerspricht sich, oder es gilt nicht dieser Richtlinie und diesen Tatsachen.", "erneut beurteilen"},
		{"policy/invalid-input", "Tatsachen passen nicht in das feste Schema der Richtlinie oder widersprechen einander. Es wurde nichts beurteilt, und das sperrt.", ""},
		{"policy/invalid-rule", "Eine Regel lässt sich nicht übersetzen oder hält sich nicht an die Form von Regeln in docs/policy.md.", "Datei und Zeile stehen dabei"},
		{"policy/too-large", "Eine Richtlinie, ihre Einstellungen oder die Tatsachen überschreiten eine Grenze.", ""},
		{"policy/unknown-file", "Im Ordner der Richtlinie liegt eine Datei, die weder Regel (NAME.rego) noch deren Tests (NAME_test.rego) noch config.json ist. Sie sähe aus, als gälte sie.", "die Datei aus dem Ordner nehmen"},
		{"policy/untested", "Ein Test einer Regel schlägt fehl, oder ihr fehlt ein Test, der anschlägt, und einer, der besteht.", ""},
	}
}

func germanDestination() []GermanEntry {
	return []GermanEntry{
		{"depot/not-found", "Das gibt es nicht unter dem, was geladen wurde.", ""},
		{"depot/withdrawn", "Etwas wurde zurückgezogen, nachdem es geladen worden war.", ""},
		{"destination/collision", "Zwei Artefakte hätten an einem Ziel denselben Namen.", "dem Ziel in gate.yaml eine andere Benennung geben (naming)"},
		{"destination/config", "Die Einstellungen eines Ziels können nicht stimmen.", "destinations in gate.yaml berichtigen"},
		{"destination/mismatch", "Am Ziel liegt nicht das, was geladen wurde, oder es fehlt.", "den Vorgang erneut laden"},
		{"destination/name-taken", "Ein Name, den die Lieferung setzen würde, gehört einem anderen Kanal.", "dem Ziel eine andere Benennung geben, oder nur einen Kanal den Namen führen lassen"},
		{"destination/none", "Kein Ziel nimmt ein Artefakt der Lieferung an; niemand könnte es abholen.", "in gate.yaml seine Art bei einem Ziel unter accepts aufnehmen"},
		{"destination/refused", "Ein Ziel nimmt etwas nicht an: kein Recht dazu, kein Platz, ein unmöglicher Name, oder etwas Fremdes ist im Weg.", "am Ziel in Ordnung bringen, dann erneut laden"},
		{"destination/unreachable", "Ein Ziel antwortet nicht, oder nicht so, wie es soll.", "prüfen, ob das Ziel läuft und erreichbar ist, dann erneut laden"},
	}
}

func germanRequest() []GermanEntry {
	return []GermanEntry{
		{"request/browser-only", "Sitzungen gibt es nur für Browser.", "Konto und Passwort mit der Anfrage senden, die sie braucht"},
		{"request/busy", "Das Gate beantwortet gerade andere Anfragen nach großen Vorgängen.", "in einigen Sekunden noch einmal fragen"},
		{"request/console-only", "Dateien des Gates werden nur an seinem Rechner genannt, und dort wird auch geladen, wo der Server es nicht selbst tut.", "am Rechner des Gates:  packhof-gate receive DATEI"},
		{"request/content-type", "Der Inhalt einer Anfrage hat einen anderen Typ, als er haben muss.", "application/json senden"},
		{"request/cross-origin", "Eine andere Website hat diese Anfrage in fremdem Namen gestellt.", "die eigene Adresse des Gates öffnen"},
		{"request/invalid", "Eine Anfrage ist nicht lesbar, oder sie enthält, was nicht hineingehört; geraten wird nichts.", ""},
		{"request/method", "Das geht mit dieser Adresse nicht.", ""},
		{"request/not-found", "Unter dieser Adresse gibt es nichts.", ""},
		{"request/too-large", "Der Inhalt einer Anfrage ist größer als alles, was dorthin gehört.", ""},
	}
}

func germanS3() []GermanEntry {
	return []GermanEntry{
		{"s3/clock", "Die Uhr hier und die des S3-Servers gehen zu weit auseinander.", "beide Uhren stellen"},
		{"s3/config", "Die Einstellungen eines S3-Servers können nicht stimmen.", ""},
		{"s3/content", "Inhalt auf dem Weg in ein Objekt ist nicht, was versprochen war. Es wurde kein Objekt angelegt.", ""},
		{"s3/credentials", "Der S3-Server nimmt den Zugangsschlüssel oder das Geheimnis nicht an.", ""},
		{"s3/denied", "Der S3-Server weiß, wer fragt, und erlaubt es nicht.", ""},
		{"s3/exists", "Ein Objekt dieses Namens gibt es schon, und es darf nicht ersetzt werden.", ""},
		{"s3/failed", "Der S3-Server antwortet mehrmals mit einem eigenen Fehler.", ""},
		{"s3/full", "Der S3-Server ist voll, oder das Kontingent des Buckets ist erschöpft.", ""},
		{"s3/interrupted", "Eine Übertragung vom S3-Server brach ab oder stand still.", "denselben Befehl noch einmal ausführen"},
		{"s3/key", "Ein Name kann nicht der Schlüssel eines Objekts sein: Server würden ihn ablehnen oder anders lesen.", ""},
		{"s3/metadata", "Angaben zu einem Objekt lassen sich nicht senden: anderes als druckbares ASCII, oder zu lang.", ""},
		{"s3/no-bucket", "Der S3-Server hat keinen solchen Bucket; angelegt wird keiner.", "den Bucket am Server anlegen, oder seinen Namen in gate.yaml berichtigen"},
		{"s3/not-found", "Ein Bucket hat kein solches Objekt.", ""},
		{"s3/plain-http", "Ein S3-Server spricht http ohne TLS, was seine Einstellungen nicht erlauben.", ""},
		{"s3/protocol", "Ein Rechner antwortet nicht wie ein S3-Server.", ""},
		{"s3/refused", "Der S3-Server hat eine Anfrage abgelehnt.", ""},
		{"s3/region", "Der Bucket gehört zu einer anderen Region als der in den Einstellungen.", ""},
		{"s3/spoilt", "Der S3-Server hat andere Bytes erhalten, oder hat andere, als gesendet wurden. Ein solches Objekt blieb nicht zurück.", ""},
		{"s3/stalled", "Der S3-Server nahm zu lange keine Bytes mehr an, oder begann zu lange keine Antwort.", ""},
		{"s3/tls", "Der S3-Server zeigt ein ungültiges Zertifikat.", ""},
		{"s3/tls-unknown-authority", "Der S3-Server zeigt ein Zertifikat einer Stelle, der dieser Rechner nicht traut.", ""},
		{"s3/too-large", "Inhalt ist größer, als ein S3-Objekt sein kann.", ""},
		{"s3/unreachable", "Der S3-Server antwortet nicht: kein Netz, kein solcher Name, abgewiesen, abgebrochen.", ""},
	}
}
