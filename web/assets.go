package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/internal/problem"
)

//go:embed assets
var assetFiles embed.FS

// assets are the files of the screens. A file's name in a page has a digest of
// its content, so browsers may keep it for ever.
type assets struct {
	files map[string][]byte // by the name in pages
	names map[string]string // from the name in the sources to that in pages
}

func loadAssets() (*assets, error) {
	a := &assets{files: map[string][]byte{}, names: map[string]string{}}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		b, err := assetFiles.ReadFile("assets/" + entry.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		ending := path.Ext(entry.Name())
		name := strings.TrimSuffix(entry.Name(), ending) + "." + hex.EncodeToString(sum[:6]) + ending
		a.files[name], a.names[entry.Name()] = b, name
	}
	return a, nil
}

func (s *server) asset(c echo.Context) error {
	types := map[string]string{".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
	name := c.Param("name")
	b, ok := s.assets.files[name]
	if !ok {
		return problem.New("request/not-found", "there is nothing at this address")
	}
	c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	return c.Blob(http.StatusOK, types[path.Ext(name)], b)
}
