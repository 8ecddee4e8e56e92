package cloudinit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

// maxDecoded bounds what a compressed value may grow to, in bytes: far above
// any user data, far below what would hurt the host.
const maxDecoded = 64 << 20

// Decode returns the bytes of a guestinfo value. The encodings are those that
// cloud-init's VMware data source knows: none, base64 or b64, gzip+base64 or
// gz+b64.
func Decode(value, encoding string) ([]byte, error) {
	switch strings.ToLower(encoding) {
	case "":
		return []byte(value), nil
	case "base64", "b64":
		return fromBase64(value)
	case "gzip+base64", "gz+b64":
		packed, err := fromBase64(value)
		if err != nil {
			return nil, err
		}
		return gunzip(packed)
	default:
		return nil, fmt.Errorf("unknown encoding %q: use base64 or gzip+base64", encoding)
	}
}

func fromBase64(value string) ([]byte, error) {
	// Wrapped lines are legal, as they are for Python's decoder.
	compact := strings.Join(strings.Fields(value), "")
	data, err := base64.StdEncoding.DecodeString(compact)
	if err != nil {
		return nil, fmt.Errorf("decode base64: %w", err)
	}
	return data, nil
}

func gunzip(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(reader, maxDecoded+1))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if len(data) > maxDecoded {
		return nil, fmt.Errorf("decompress: more than %d MiB", maxDecoded>>20)
	}
	return data, nil
}
