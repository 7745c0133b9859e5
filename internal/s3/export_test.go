package s3

// CopyInParts makes c copy objects larger than limit in parts, which otherwise
// only huge ones need.
func CopyInParts(c *Client, limit int64) { c.copyLimit = limit }
