package testkit

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"testing"
	"time"
)

func TestKeyBelongsToItsSeed(t *testing.T) {
	if !Key("a").Equal(Key("a")) || Key("a").Equal(Key("b")) {
		t.Error("want the same key for the same seed, and another one for another")
	}
}

func TestKeySigns(t *testing.T) {
	key, digest := Key("a"), sha256.Sum256([]byte("message"))
	signature, err := key.Sign(nil, digest[:], crypto.SHA256) // without a source of randomness: RFC 6979
	if err != nil {
		t.Fatal(err)
	}
	if !ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature) {
		t.Error("the key does not verify its own signature")
	}
}

func TestBytesAreThoseOfRandom(t *testing.T) {
	long, short := Bytes("s", 1000), make([]byte, 10)
	if n, err := Random("s").Read(short); n != 10 || err != nil {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	if !bytes.Equal(long[:10], short) {
		t.Error("one seed, two streams")
	}
}

func TestClock(t *testing.T) {
	clock := NewClock(Noon())
	if !clock.Now().Equal(clock.Now()) {
		t.Error("the clock does not stand still")
	}
	clock.Advance(36 * time.Hour)
	if want := time.Date(2026, time.December, 2, 0, 0, 0, 0, time.UTC); !clock.Now().Equal(want) {
		t.Errorf("after 36 hours: %v, want %v", clock.Now(), want)
	}
}
