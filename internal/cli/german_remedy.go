package cli

// GermanRemedy says in German what helps against a code. own is the remedy that
// the error itself brings, if any: where it has one and German has nothing that
// holds for every error of the code, ok is false, and its own is nearer.
func GermanRemedy(code, own string) (text string, ok bool) {
	if german, _ := German(code); german.Remedy != "" {
		return german.Remedy, true
	}
	if entry, _ := Lookup(code); own != "" && own != entry.Remedy {
		return "", false
	}
	text, ok = germanFallbacks()[code]
	return text, ok
}

// germanFallbacks are what helps where the error itself names nothing nearer.
func germanFallbacks() map[string]string {
	return map[string]string{
		"config/unreadable":              "eine gewöhnliche Datei, nicht größer als genannt, an ihre Stelle legen",
		"config/syntax":                  "die Datei an der genannten Stelle berichtigen",
		"config/invalid":                 "den Wert an der genannten Stelle berichtigen",
		"config/bad-ca":                  "eine Datei mit Zertifikaten in PEM angeben",
		"config/exists":                  "sie zuerst entfernen, oder einen anderen Ordner wählen",
		"passphrase/command":             "den Befehl für sich ausführen und beheben, was er beanstandet",
		"password/command":               "den Befehl für sich ausführen und beheben, was er beanstandet",
		"oci/malformed":                  "das Image neu bauen oder weglassen lassen",
		"format/too-large":               "den Absender bitten, es kleiner neu zu erstellen",
		"volume/not-a-file":              "eine Datei nennen, oder den Ordner mit den Datenträgerteilen",
		"volume/not-complete":            "die fehlenden Datenträgerteile holen und ebenfalls nennen",
		"bundle/name-not-allowed":        "den Absender einen Namen seines Kanals verwenden lassen, oder ihm diesen im Vertrauensanker geben lassen",
		"trust/missing":                  "den Ordner nennen: --trust ORDNER",
		"trust/key-expired":              "einen neuen Schlüssel erzeugen und in den Vertrauensanker aufnehmen lassen",
		"trust/fingerprint":              "den Fingerabdruck noch einmal vergleichen, auf einem anderen Weg als dem Datenträger",
		"child/absent":                   "das Hilfsprogramm dorthin legen, wo es gesucht wird, oder seinen Pfad berichtigen",
		"child/unstartable":              "Eigentümer und Rechte des Hilfsprogramms prüfen, und ob es für diesen Rechner gebaut ist",
		"child/crashed":                  "denselben Befehl noch einmal ausführen; stürzt es wieder ab, weglassen lassen, was es untersucht hat",
		"child/timeout":                  "ihm in der Konfiguration mehr Zeit geben, oder einen ruhigeren Rechner",
		"child/memory":                   "ihm in der Konfiguration mehr Arbeitsspeicher geben",
		"child/output":                   "weglassen lassen, was es untersucht hat",
		"child/disk":                     "Platz schaffen, oder weglassen lassen, was es untersucht hat",
		"child/cancelled":                "denselben Befehl noch einmal ausführen",
		"child/unsupported":              "Linux verwenden",
		"sbom/too-large":                 "das Artefakt auf mehrere aufteilen lassen",
		"sbom/malformed":                 "die Lieferung neu erstellen lassen",
		"sbom/version":                   "die Lieferung mit einer aktuellen Version neu erstellen lassen",
		"sbom/subject":                   "die Lieferung neu erstellen lassen",
		"sbom/time":                      "die Lieferung neu erstellen lassen",
		"sbom/serial":                    "die Lieferung neu erstellen lassen",
		"sbom/not-canonical":             "die Lieferung neu erstellen lassen",
		"signing/not-a-key":              "eine Schlüsseldatei nennen, die  packhof key generate  erzeugt hat",
		"signing/key-too-large":          "die Schlüsseldatei selbst nennen",
		"signing/wrong-passphrase":       "die Passphrase noch einmal eingeben; ist sie richtig, die Schlüsseldatei aus einer Sicherung zurückholen",
		"signing/no-passphrase":          "eine Passphrase eingeben, wenn danach gefragt wird",
		"signing/unencrypted-key":        "ihn mit einer Passphrase schützen, oder einen neuen erzeugen",
		"signing/key-algorithm":          "einen ECDSA-Schlüssel auf P-256 erzeugen",
		"signing/signer-failed":          "denselben Befehl noch einmal ausführen; scheitert er wieder, mit einem anderen Schlüssel unterschreiben",
		"signing/bad-signature-file":     "die Unterschrift noch einmal vom Original kopieren, oder noch einmal unterschreiben lassen",
		"signing/too-many-signatures":    "die Unterschriftsdateien wegnehmen, die nicht gebraucht werden",
		"signing/bad-root":               "den Vertrauensanker noch einmal vom Original kopieren und seinen Fingerabdruck vergleichen",
		"signing/root-version":           "zuerst die Versionen dazwischen aufnehmen, der Reihe nach",
		"signing/root-signatures":        "die fehlenden Unterschriften einholen; war er unterschrieben, ihn noch einmal vom Original kopieren",
		"signing/root-change":            "die genannte Regel einhalten",
		"signing/bad-revocations":        "die Widerrufsliste noch einmal vom Original kopieren",
		"signing/revocations-shrunk":     "die neueste Widerrufsliste anfordern",
		"signing/revocations-signatures": "die fehlenden Unterschriften einholen; war sie unterschrieben, sie noch einmal vom Original kopieren",
		"signing/revocations-change":     "berichtigen, was genannt ist",
		"signing/unknown-role":           "eine neuere Version des Vertrauensankers aufnehmen",
		"signing/revoked":                "eine spätere verwenden, die nicht widerrufen ist",
		"login/account-needed":           "ein Konto des Gates nennen: --as NAME",
		"policy/invalid-input":           "die Lieferung mit einer aktuellen Version neu erstellen lassen",
		"policy/too-large":               "verkleinern, was genannt ist, oder die Lieferung aufteilen lassen",
		"policy/untested":                "die Regel berichtigen, oder den fehlenden Test hinzufügen",
		"case/choice":                    "eines von beiden wählen",
		"case/no-review":                 "die Lieferung erneut einbringen, damit sie beurteilt wird",
		"case/rejected":                  "den Absender um eine andere Lieferung bitten: Eine Ablehnung ist endgültig",
		"case/waiting":                   "packhof-gate show N, dann  packhof-gate approve N --as NAME",
		"depot/not-found":                "auf der Seite Depot nachsehen, was es gibt",
		"depot/withdrawn":                "verwenden, was es ersetzt",
		"request/invalid":                "siehe /api/v1/openapi.json",
		"request/too-large":              "siehe /api/v1/openapi.json",
		"request/method":                 "siehe /api/v1/openapi.json",
		"request/not-found":              "siehe /api/v1/openapi.json",
		"s3/config":                      "die genannten Einstellungen berichtigen",
		"s3/content":                     "denselben Befehl noch einmal ausführen; bleibt es so, den Datenträger des Speichers prüfen",
		"s3/credentials":                 "Zugangsschlüssel und geheimen Schlüssel in den Einstellungen berichtigen",
		"s3/denied":                      "sich vom Betreiber des Servers das genannte Recht geben lassen",
		"s3/exists":                      "das Objekt entfernen, oder ein anderes Präfix verwenden",
		"s3/failed":                      "denselben Befehl später noch einmal ausführen",
		"s3/full":                        "auf dem Server Platz schaffen, oder das Kontingent erhöhen",
		"s3/key":                         "die Datei umbenennen",
		"s3/metadata":                    "druckbares ASCII verwenden, und weniger davon",
		"s3/not-found":                   "den Namen des Objekts berichtigen",
		"s3/plain-http":                  "https verwenden, oder http ohne TLS in den Einstellungen erlauben",
		"s3/protocol":                    "die Adresse (endpoint) in den Einstellungen berichtigen",
		"s3/refused":                     "im Wortlaut nachsehen, was der Server beanstandet",
		"s3/region":                      "die Region in den Einstellungen berichtigen",
		"s3/spoilt":                      "denselben Befehl noch einmal ausführen; bleibt es so, Server und Netz prüfen",
		"s3/stalled":                     "denselben Befehl noch einmal ausführen, wenn der Server weniger zu tun hat",
		"s3/tls":                         "das Zertifikat vom Betreiber des Servers erneuern lassen, und die Uhr hier prüfen",
		"s3/tls-unknown-authority":       "die Zertifizierungsstelle in den Einstellungen angeben",
		"s3/too-large":                   "die Datei aufteilen",
		"s3/unreachable":                 "das Netz und die Adresse (endpoint) in den Einstellungen prüfen",
	}
}
