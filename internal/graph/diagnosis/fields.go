package diagnosis

import "encoding/json"

// owns tells whether a set of managed fields (FieldsV1) holds a path.
func owns(raw []byte, path []string) bool {
	for _, key := range path {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return false
		}
		next, ok := fields[key]
		if !ok {
			return false
		}
		raw = next
	}
	return true
}
