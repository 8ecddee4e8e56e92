package addons

import "embed"

// Files is the catalogue as bundle.Load reads it.
//
//go:embed */addon.yaml */*/*.yaml
var Files embed.FS
