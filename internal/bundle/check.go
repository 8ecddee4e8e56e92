package bundle

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// checkCost bounds what one evaluation of a health check may cost, in CEL's units:
// enough to go through some thousand items, not to hang on a hostile bundle.
const checkCost = 100_000

// HealthCheck says when an object is healthy, beyond what its status tells by the
// conventions of Kubernetes.
type HealthCheck struct {
	ObjectRef `yaml:",inline"`
	// CEL is an expression over the object, called self, that is true when it is healthy.
	CEL string `yaml:"cel"`
	// Message is told while it is not.
	Message string `yaml:"message"`

	program cel.Program
}

// compile prepares the expression.
func (c *HealthCheck) compile() error {
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType))
	if err != nil {
		return err
	}
	ast, issues := env.Compile(c.CEL)
	if issues != nil && issues.Err() != nil {
		return fmt.Errorf("cel: %s", issues.Errors()[0].Message)
	}
	if kind := ast.OutputType(); kind != cel.BoolType && kind != cel.DynType {
		return fmt.Errorf("cel: the expression is %s, want bool", kind)
	}
	c.program, err = env.Program(ast, cel.CostLimit(checkCost))
	return err
}

// Healthy evaluates the expression. What it says of why not is for a person.
func (c *HealthCheck) Healthy(object *unstructured.Unstructured) (ok bool, why string) {
	result, _, err := c.program.Eval(map[string]any{"self": object.Object})
	if err != nil {
		return false, c.why(fmt.Sprintf("%s: %v", c.CEL, err))
	}
	healthy, isBool := result.Value().(bool)
	if !isBool {
		return false, c.why(fmt.Sprintf("%s is not true or false", c.CEL))
	}
	if !healthy {
		return false, c.why(c.CEL + " is not so")
	}
	return true, ""
}

func (c *HealthCheck) why(otherwise string) string {
	if c.Message != "" {
		return c.Message
	}
	return otherwise
}

// Healthy asks the checks of a version that are meant for an object.
func (v *Version) Healthy(gk schema.GroupKind, object *unstructured.Unstructured) (ok bool, why string) {
	for i := range v.Health {
		check := &v.Health[i]
		if !check.Matches(gk, object.GetNamespace(), object.GetName()) {
			continue
		}
		if ok, why := check.Healthy(object); !ok {
			return false, why
		}
	}
	return true, ""
}
