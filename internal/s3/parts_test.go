package s3

import (
	"testing"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		size, wanted int64
		inFlight     int
		partSize     int64
		count        int
		inMemory     int
	}{
		"one byte more than a part":   {16*mib + 1, 16 * mib, 3, 16 * mib, 2, 2},
		"even":                        {64 * mib, 16 * mib, 3, 16 * mib, 4, 3},
		"as many parts as there may":  {160_000 * mib, 16 * mib, 3, 16 * mib, 10_000, 3},
		"one byte more than that":     {160_000*mib + 1, 16 * mib, 3, 17 * mib, 9412, 2},
		"parts larger than the three": {1024 * gib, 16 * mib, 3, 105 * mib, 9987, 1},
		"the largest object":          {10_000 * 5 * gib, 16 * mib, 3, 5 * gib, 10_000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cut(c.size, c.wanted, c.inFlight)
			if err != nil {
				t.Fatal(err)
			}
			if want := (layout{c.size, c.partSize, c.count, c.inMemory}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			offset, size := got.part(got.count)
			if size <= 0 || size > got.partSize || offset+size != c.size {
				t.Errorf("the last part is %d bytes from %d", size, offset)
			}
		})
	}
	if _, err := cut(10_000*5*gib+1, 16*mib, 3); !Is(err, "s3/too-large") {
		t.Errorf("an object too large: %v", err)
	}
}

func FuzzContentRange(f *testing.F) {
	for _, seed := range []string{"bytes 1-2/3", "bytes 0-0/1", "bytes 5-2/9", "bytes 0-9/9", "bytes 0-1/*", "bytes 0-999999999999999999/999999999999999999", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		first, last, total, ok := parseContentRange(header)
		if ok && (first < 0 || first > last || last >= total) {
			t.Errorf("%q gives %d to %d of %d", header, first, last, total)
		}
	})
}

func TestContentRange(t *testing.T) {
	first, last, total, ok := parseContentRange("bytes 5-9/10")
	if first != 5 || last != 9 || total != 10 || !ok {
		t.Errorf("got %d-%d/%d, %v", first, last, total, ok)
	}
	for _, header := range []string{"", "bytes 0-9/*", "bytes 0-10/10", "bytes 3-2/10", "bytes 0-9/10 ", "items 0-9/10", "bytes 0-1/9999999999999999999"} {
		if _, _, _, ok := parseContentRange(header); ok {
			t.Errorf("%q is taken for a range", header)
		}
	}
}

func FuzzKey(f *testing.F) {
	for _, seed := range []string{"a", "a/b", "a//b", "../a", "a b+ü", "a\x00", "\xff", "/a", "a/", "a/./b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if checkKey(key) != nil {
			return
		}
		if err := checkKey(key + "/" + "x"); len(key)+2 <= maxKey && err != nil {
			t.Errorf("%q is a key, but nothing may be below it: %v", key, err)
		}
		if err := checkKey(key + "/../x"); err == nil {
			t.Errorf("%q climbs", key+"/../x")
		}
	})
}
