package bundle

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/packhof/packhof/internal/problem"
)

// MediumSize is a kind of medium and the largest file that it takes.
type MediumSize struct {
	Name  string
	Bytes int64
	What  string
}

// MediumSizes lists the media that ParseVolumeSizes knows by name.
func MediumSizes() []MediumSize {
	return []MediumSize{
		{"fat32", 4<<30 - 1, "the largest file of a FAT32 stick"},
		{"cd", 700 << 20, "a CD of 700 MiB, less 8 MiB for its file system"},
		{"dvd", 4_700_372_992, "a DVD of one layer, less 8 MiB for its file system"},
		{"dvd-dl", 8_543_666_176, "a DVD+R of two layers, less 8 MiB for its file system"},
		{"bd", 25_025_314_816, "a Blu-ray disc of one layer, less 8 MiB for its file system"},
		{"bd-dl", 50_050_629_632, "a Blu-ray disc of two layers, less 8 MiB for its file system"},
	}
}

// discReserve is what the file system of an optical disc takes, generously.
const discReserve = 8 << 20

// maxSizes bounds a list of sizes: nobody has more kinds of sticks than volumes.
const maxSizes = MaxVolumes

// ParseVolumeSizes reads the largest sizes of volumes as people write them: a
// list with commas of numbers with units (4GiB, 700MB, 1048576), each less
// some bytes where a minus follows (4GiB-1), or names of media (fat32, dvd, bd).
// The last one holds for every further volume.
func ParseVolumeSizes(text string) ([]int64, error) {
	words := strings.Split(text, ",")
	if len(words) > maxSizes {
		return nil, badSize(text)
	}
	var sizes []int64
	for _, word := range words {
		size, err := parseVolumeSize(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

func badSize(text string) error {
	return problem.New("volume/size-malformed", "%.60q is no size of a volume", text).
		Hint("write a size such as 4GiB-1, 700MB or 8589934592, a list such as 4GiB,16GiB, or a medium: %s", strings.Join(mediumNames(), ", "))
}

func mediumNames() []string {
	var names []string
	for _, m := range MediumSizes() {
		names = append(names, m.Name)
	}
	return names
}

func parseVolumeSize(text string) (int64, error) {
	known := MediumSizes()
	if i := slices.IndexFunc(known, func(m MediumSize) bool { return strings.EqualFold(m.Name, text) }); i >= 0 {
		if i == 0 {
			return known[i].Bytes, nil // a file system, which takes its room elsewhere
		}
		return known[i].Bytes - discReserve, nil
	}
	number, less, minus := strings.Cut(text, "-")
	size, err := sizeWithUnit(number)
	if err != nil {
		return 0, badSize(text)
	}
	if minus {
		off, err := sizeWithUnit(less)
		if err != nil {
			return 0, badSize(text)
		}
		size -= off
	}
	if size < 1 {
		return 0, badSize(text)
	}
	return size, nil
}

// sizeWithUnit reads a number of bytes with an optional unit, of 1000 or, with
// an i in it, of 1024.
func sizeWithUnit(text string) (int64, error) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit := strings.ToLower(strings.TrimSpace(text[len(digits):]))
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || digits[0] == '+' {
		return 0, fmt.Errorf("%q is no number", digits)
	}
	factors := map[string]int64{
		"": 1, "b": 1, "k": 1 << 10, "kib": 1 << 10, "kb": 1e3, "m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
		"g": 1 << 30, "gib": 1 << 30, "gb": 1e9, "t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
	}
	factor, ok := factors[unit]
	if !ok || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is no unit", unit)
	}
	return n * factor, nil
}
