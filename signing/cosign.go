package signing

import "strings"

const trustedRootLine = `{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`

// TrustedRootForCosign is a trusted_root.json that trusts no one. Stock cosign
// asks for such a file even where only a key is checked, and looks for one on
// the network if it gets none.
func TrustedRootForCosign() []byte { return []byte(trustedRootLine + "\n") }

// CosignFiles are the file names in the commands of CosignCommands.
type CosignFiles struct {
	Payload, Bundle, PublicKey, TrustedRoot string
}

// CosignCommands is how to check one signature without us, as two lines for a
// POSIX shell: one writes the trusted root file, one checks. Every name is
// quoted. The check is of one key; thresholds and revocations are not in it.
func CosignCommands(f CosignFiles) []string {
	return []string{
		"printf '%s\\n' " + ShellQuote(trustedRootLine) + " > " + shellFile(f.TrustedRoot),
		strings.Join([]string{
			"cosign verify-blob --new-bundle-format --insecure-ignore-tlog --offline",
			"--trusted-root", shellFile(f.TrustedRoot),
			"--key", shellFile(f.PublicKey),
			"--bundle", shellFile(f.Bundle),
			shellFile(f.Payload),
		}, " "),
	}
}

// shellFile quotes a file name and keeps it from being read as an option or,
// by cosign, as the address of something to fetch.
func shellFile(name string) string {
	if strings.HasPrefix(name, "-") || strings.Contains(name, "://") {
		name = "./" + name
	}
	return ShellQuote(name)
}

// ShellQuote writes s as one word of a POSIX shell.
func ShellQuote(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("./_-+@%=", r))
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
