package patch

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDiffHoldsOnlyWhatChanged(t *testing.T) {
	for name, tc := range map[string]struct{ before, after, want string }{
		"equal objects":                    {`{"a":{"b":1}}`, `{"a":{"b":1}}`, `{}`},
		"a changed field":                  {`{"a":{"b":1,"c":2}}`, `{"a":{"b":3,"c":2}}`, `{"a":{"b":3}}`},
		"a removed field":                  {`{"a":{"b":1,"c":2}}`, `{"a":{"b":1}}`, `{"a":{"c":null}}`},
		"a removed section":                {`{"a":{"b":1}}`, `{}`, `{"a":null}`},
		"a new section":                    {`{}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		"a list is replaced":               {`{"a":[1,2]}`, `{"a":[1]}`, `{"a":[1]}`},
		"a null that was absent is no new": {`{}`, `{"a":null}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := diff(parse(t, tc.before), parse(t, tc.after))
			if d := cmp.Diff(parse(t, tc.want), got); d != "" {
				t.Errorf("patch (-want +got):\n%s", d)
			}
		})
	}
}

func TestStatusOperationsChangeOnlyOurConditions(t *testing.T) {
	for name, tc := range map[string]struct{ before, after, live, want string }{
		"nothing changed": {
			before: `{"phase":"A"}`, after: `{"phase":"A"}`, live: `{"phase":"B"}`,
			want: `null`,
		},
		"the first status": {
			after: `{"phase":"A"}`,
			want:  `[{"op":"test","path":"/status","value":null},{"op":"add","path":"/status","value":{"phase":"A"}}]`,
		},
		"fields one by one": {
			before: `{"a":1,"b":2,"c":3}`, after: `{"a":1,"b":4,"d":5}`, live: `{"a":9,"b":2,"c":3}`,
			want: `[{"op":"add","path":"/status/b","value":4},{"op":"remove","path":"/status/c","value":null},{"op":"add","path":"/status/d","value":5}]`,
		},
		"what is stored already is left out": {
			before: `{"a":1}`, after: `{"a":2}`, live: `{"a":2}`,
			want: `null`,
		},
		"the first conditions": {
			before: `{"a":1}`, after: `{"a":1,"conditions":[{"type":"X"}]}`, live: `{"a":1}`,
			want: `[{"op":"test","path":"/status/conditions","value":null},{"op":"add","path":"/status/conditions","value":[{"type":"X"}]}]`,
		},
		"a changed condition where it is now, not where it was": {
			before: `{"conditions":[{"type":"X","status":"False"}]}`,
			after:  `{"conditions":[{"type":"X","status":"True"}]}`,
			live:   `{"conditions":[{"type":"Theirs"},{"type":"X","status":"False"}]}`,
			want:   `[{"op":"test","path":"/status/conditions/1/type","value":"X"},{"op":"replace","path":"/status/conditions/1","value":{"type":"X","status":"True"}}]`,
		},
		"a new condition behind the one that precedes it": {
			before: `{"conditions":[{"type":"A"},{"type":"C"}]}`,
			after:  `{"conditions":[{"type":"A"},{"type":"B"},{"type":"C"}]}`,
			live:   `{"conditions":[{"type":"A"},{"type":"C"}]}`,
			want:   `[{"op":"add","path":"/status/conditions/1","value":{"type":"B"}}]`,
		},
		"a removed condition moves those behind it": {
			before: `{"conditions":[{"type":"A"},{"type":"B","n":1}]}`,
			after:  `{"conditions":[{"type":"B","n":2}]}`,
			live:   `{"conditions":[{"type":"A"},{"type":"B","n":1}]}`,
			want: `[{"op":"test","path":"/status/conditions/0/type","value":"A"},{"op":"remove","path":"/status/conditions/0","value":null},
			        {"op":"test","path":"/status/conditions/0/type","value":"B"},{"op":"replace","path":"/status/conditions/0","value":{"type":"B","n":2}}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(statusOperations(parse(t, tc.before), parse(t, tc.after), parse(t, tc.live), absentValues))
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("operations (-want +got):\n%s", d)
			}
		})
	}
}
