// Package agefile encrypts what travels to a plant, and opens it there: streams
// of age (age-encryption.org/v1) for X25519 recipients.
//
// A stream says nothing about who made it: whoever knows a recipient can make
// one. So nothing is trusted for having come encrypted; signatures are judged
// on what is inside. The package knows nothing of bundles and opens no files,
// and it never writes plaintext anywhere but to its caller. It takes no
// passphrases, no plugins, no SSH keys and no armour.
package agefile
