package machine

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
)

// Keys that cloud-init's VMware data source and Ignition read, see
// https://docs.cloud-init.io/en/latest/reference/datasources/vmware.html.
const (
	userdataKey       = "guestinfo.userdata"
	metadataKey       = "guestinfo.metadata"
	ignitionKey       = "guestinfo.ignition.config.data"
	encodingSuffix    = ".encoding"
	base64Encoding    = "base64"
	gzipEncoding      = "gzip+base64"
	ignitionFormat    = "ignition"
	cloudConfigFormat = "cloud-config"
)

const (
	// compressFrom is the size in bytes from which bootstrap data is compressed.
	compressFrom = 32 * 1024
	// optionLimit is the size in bytes from which vCenter refuses the value of an advanced option; base64 fills it with 48 KiB.
	optionLimit = 64 * 1024
)

// bootstrapData is the content of a bootstrap Secret.
type bootstrapData struct {
	value []byte
	// format is cloud-config (also when empty) or ignition.
	format string
}

// options are the advanced options that give a virtual machine its userdata, its metadata and what the user asks for.
func options(custom map[string]string, data bootstrapData, metadata []byte) (map[string]string, error) {
	out := map[string]string{}
	for key, value := range custom {
		out[key] = value
	}
	out[metadataKey], out[metadataKey+encodingSuffix] = base64.StdEncoding.EncodeToString(metadata), base64Encoding
	switch data.format {
	case ignitionFormat:
		return out, put(out, ignitionKey, data.value)
	case cloudConfigFormat, "":
		return out, put(out, userdataKey, data.value)
	default:
		return nil, fmt.Errorf("bootstrap data is of format %q: only %s and %s are known", data.format, cloudConfigFormat, ignitionFormat)
	}
}

// put stores bootstrap data under key, compressed when it is big: cloud-init and Ignition read both forms.
func put(out map[string]string, key string, data []byte) error {
	value, encoding := data, base64Encoding
	if len(data) > compressFrom {
		var err error
		if value, err = compress(data); err != nil {
			return err
		}
		encoding = gzipEncoding
	}
	encoded := base64.StdEncoding.EncodeToString(value)
	if len(encoded) >= optionLimit {
		return fmt.Errorf("bootstrap data of %d bytes makes %d bytes of %s (compressed and in base64), more than the %d that vSphere takes: "+
			"make spec.files of its KubeadmConfig smaller, or fetch large ones with spec.preKubeadmCommands", len(data), len(encoded), key, optionLimit-1)
	}
	out[key], out[key+encodingSuffix] = encoded, encoding
	return nil
}

// compress gives the same bytes for the same input: they are compared with what the virtual machine has.
func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
