package s3

import "github.com/packhof/packhof/internal/problem"

const (
	maxParts    = 10_000
	maxPartSize = 5 << 30
	partUnit    = 1 << 20
)

// layout is how an object is cut: parts of one size, the last one shorter.
type layout struct {
	size     int64
	partSize int64
	count    int
	inMemory int // parts held at a time
}

// cut lays out an object of size bytes, size > 0. Parts grow where more than
// 10,000 would be needed, and then fewer are held, so that the memory stays
// that of inFlight parts of the wanted size, or of one part.
func cut(size, wanted int64, inFlight int) (layout, error) {
	partSize := max(wanted, roundUp(ceil(size, maxParts), partUnit))
	if partSize > maxPartSize {
		return layout{}, problem.New("s3/too-large", "%d bytes are more than an S3 object can have", size)
	}
	count := int(ceil(size, partSize))
	inMemory := int(max(1, wanted*int64(inFlight)/partSize))
	return layout{size: size, partSize: partSize, count: count, inMemory: min(inMemory, count)}, nil
}

// part is the extent of a part, counted from 1.
func (l layout) part(number int) (offset, size int64) {
	offset = int64(number-1) * l.partSize
	return offset, min(l.partSize, l.size-offset)
}

func ceil(a, b int64) int64 { return (a-1)/b + 1 }

func roundUp(a, unit int64) int64 { return ceil(a, unit) * unit }
