package contract_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/millwright-dev/millwright/internal/contract"
)

func TestLabelValueHashesWhatIsTooLong(t *testing.T) {
	if got := contract.LabelValue("workers"); got != "workers" {
		t.Errorf("a short name became %q", got)
	}
	long := strings.Repeat("a", 64)
	got := contract.LabelValue(long)
	if errs := validation.IsValidLabelValue(got); len(errs) > 0 {
		t.Errorf("LabelValue of a long name is %q: %s", got, errs)
	}
	if other := contract.LabelValue(strings.Repeat("b", 64)); other == got {
		t.Errorf("two long names have the same value %q", got)
	}
}
