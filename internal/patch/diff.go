package patch

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// diff returns the JSON merge patch (RFC 7386) from before to after; empty when they are equal.
func diff(before, after map[string]any) map[string]any {
	out := map[string]any{}
	for key, old := range before {
		if _, kept := after[key]; !kept && old != nil {
			out[key] = nil
		}
	}
	for key, value := range after {
		old, existed := before[key]
		if existed && reflect.DeepEqual(old, value) {
			continue
		}
		oldMap, ok1 := old.(map[string]any)
		newMap, ok2 := value.(map[string]any)
		if ok1 && ok2 {
			if sub := diff(oldMap, newMap); len(sub) > 0 {
				out[key] = sub
			}
			continue
		}
		if value == nil && !existed {
			continue
		}
		out[key] = value
	}
	return out
}

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// missing says what the API server holds where we read nothing: no field at all, or an empty one. A typed object does
// not tell which, so the second try of a patch expects the other.
type missing struct{ status, conditions any }

var (
	absentValues = missing{}
	emptyValues  = missing{status: map[string]any{}, conditions: []any{}}
)

// statusOperations returns the JSON patch that carries the change from before to after over to live. Fields of status
// are replaced whole; conditions one by one, each at the position it has in live, and only after a test that the
// position still holds that type. before and live differ when somebody else wrote in between.
func statusOperations(before, after, live map[string]any, expected missing) []operation {
	var ops []operation
	if len(live) == 0 {
		if len(after) == 0 || reflect.DeepEqual(before, after) {
			return nil
		}
		// Nothing to merge with; the test refuses to replace a status that appeared meanwhile.
		return []operation{{Op: "test", Path: "/status", Value: expected.status}, {Op: "add", Path: "/status", Value: after}}
	}
	for _, key := range sortedKeys(before, after) {
		if key == "conditions" {
			continue
		}
		path := "/status/" + escape(key)
		value, wanted := after[key]
		stored, present := live[key]
		switch {
		case reflect.DeepEqual(before[key], value):
		case wanted && !(present && reflect.DeepEqual(stored, value)):
			ops = append(ops, operation{Op: "add", Path: path, Value: value})
		case !wanted && present:
			ops = append(ops, operation{Op: "remove", Path: path})
		}
	}
	return append(ops, conditionOperations(list(before), list(after), list(live), expected)...)
}

// conditionOperations changes in live the conditions that differ between before and after, and no others.
func conditionOperations(before, after, live []any, expected missing) []operation {
	const path = "/status/conditions"
	if len(live) == 0 {
		if len(after) == 0 || reflect.DeepEqual(before, after) {
			return nil
		}
		return []operation{{Op: "test", Path: path, Value: expected.conditions}, {Op: "add", Path: path, Value: after}}
	}

	var ops []operation
	types := typesOf(live)
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	expect := func(i int) operation { return operation{Op: "test", Path: at(i) + "/type", Value: types[i]} }
	for _, condition := range before {
		name := typeOf(condition)
		if i := slices.Index(types, name); i >= 0 && find(after, name) == nil {
			ops = append(ops, expect(i), operation{Op: "remove", Path: at(i)})
			types = slices.Delete(types, i, i+1)
		}
	}
	for position, condition := range after {
		name := typeOf(condition)
		if reflect.DeepEqual(find(before, name), condition) || reflect.DeepEqual(find(live, name), condition) {
			continue
		}
		if i := slices.Index(types, name); i >= 0 {
			ops = append(ops, expect(i), operation{Op: "replace", Path: at(i), Value: condition})
			continue
		}
		// Insert behind the condition that precedes it in our order; the API server refuses a second one of the same type.
		i := 0
		for p := position - 1; p >= 0 && i == 0; p-- {
			i = slices.Index(types, typeOf(after[p])) + 1
		}
		ops = append(ops, operation{Op: "add", Path: at(i), Value: condition})
		types = slices.Insert(types, i, name)
	}
	return ops
}

func list(status map[string]any) []any {
	l, _ := status["conditions"].([]any)
	return l
}

func typeOf(condition any) string {
	m, _ := condition.(map[string]any)
	name, _ := m["type"].(string)
	return name
}

func typesOf(conditions []any) []string {
	out := make([]string, 0, len(conditions))
	for _, condition := range conditions {
		out = append(out, typeOf(condition))
	}
	return out
}

func find(conditions []any, name string) any {
	for _, condition := range conditions {
		if typeOf(condition) == name {
			return condition
		}
	}
	return nil
}

func sortedKeys(maps ...map[string]any) []string {
	var keys []string
	for _, m := range maps {
		for key := range m {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// escape writes a key as a token of a JSON pointer (RFC 6901).
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
