package gate

import "sync"

// Counting makes the Receipt of a Put. What a Put does at once, it may count at
// once; the zero value has counted nothing.
type Counting struct {
	mu      sync.Mutex
	receipt Receipt
}

// Kept counts a blob or manifest that was there already.
func (c *Counting) Kept() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receipt.Kept++
}

// Moved counts a blob or manifest of so many bytes that had to be moved.
func (c *Counting) Moved(size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receipt.Blobs++
	c.receipt.Bytes += size
}

// Receipt says what was counted until now, of content that is at location, ""
// while it is not all there.
func (c *Counting) Receipt(location string) Receipt {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.receipt
	r.Location = location
	return r
}
