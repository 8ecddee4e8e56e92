package build

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"

	"k8s.io/apimachinery/pkg/util/version"
)

// Kubectl returns the kubectl on PATH where Kubernetes' version skew policy allows it for DefaultVersion (one minor
// older or newer), or else builds one into bin/.
func (b Builder) Kubectl(ctx context.Context) (string, error) {
	output := b.Source.Bin("kubectl")
	if isFile(output) {
		return output, nil
	}
	unfit := "none on PATH"
	if path, err := exec.LookPath("kubectl"); err == nil {
		if unfit = unfitKubectl(ctx, path); unfit == "" {
			return path, nil
		}
	}
	return output, b.alone(ctx, compile{
		what: "kubectl " + DefaultVersion, why: unfit, dir: b.Source.Module(), output: output,
		pkg: "k8s.io/kubernetes/cmd/kubectl", flags: []string{"-ldflags=" + versionFlags(DefaultVersion)},
	})
}

// unfitKubectl tells why a kubectl cannot serve DefaultVersion; empty when it can.
func unfitKubectl(ctx context.Context, path string) string {
	out, err := exec.CommandContext(ctx, path, "version", "--client", "-o", "json").Output()
	var answer struct {
		ClientVersion struct{ GitVersion string }
	}
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil {
		return fmt.Sprintf("%s does not tell its version: %v", path, err)
	}
	have, err := version.ParseGeneric(answer.ClientVersion.GitVersion)
	if err != nil {
		return fmt.Sprintf("%s: %v", path, err)
	}
	want := version.MustParseGeneric(DefaultVersion)
	if have.Major() != want.Major() || have.Minor()+1 < want.Minor() || have.Minor() > want.Minor()+1 {
		return fmt.Sprintf("%s is %s, more than one minor away", path, answer.ClientVersion.GitVersion)
	}
	return ""
}
