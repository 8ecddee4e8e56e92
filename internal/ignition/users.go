package ignition

import (
	"fmt"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_3/types"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

func renderUsers(users []bootstrapv1.User) ([]types.PasswdUser, error) {
	out := make([]types.PasswdUser, 0, len(users))
	for i, user := range users {
		if user.PasswdFrom.IsDefined() {
			return nil, fmt.Errorf("spec.users[%d] still refers to Secret %q: the password must be read first", i, user.PasswdFrom.Secret.Name)
		}
		rendered := types.PasswdUser{
			Name: user.Name, Gecos: given(user.Gecos), HomeDir: given(user.HomeDir), Shell: given(user.Shell), PrimaryGroup: given(user.PrimaryGroup),
		}
		// Without a hash nobody can log in with a password.
		if !ptr.Deref(user.LockPassword, false) {
			rendered.PasswordHash = given(user.Passwd)
		}
		for group := range strings.SplitSeq(user.Groups, ",") {
			if group = strings.TrimSpace(group); group != "" {
				rendered.Groups = append(rendered.Groups, types.Group(group))
			}
		}
		for _, key := range user.SSHAuthorizedKeys {
			rendered.SSHAuthorizedKeys = append(rendered.SSHAuthorizedKeys, types.SSHAuthorizedKey(key))
		}
		out = append(out, rendered)
	}
	return out, nil
}

func sudoers(users []bootstrapv1.User) string {
	var out strings.Builder
	for _, user := range users {
		if user.Sudo != "" {
			fmt.Fprintf(&out, "%s %s\n", user.Name, user.Sudo)
		}
	}
	return out.String()
}

func given(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}
