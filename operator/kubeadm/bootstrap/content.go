package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inputError says that something which the user has to provide is missing or wrong. Nothing tells us
// when it is there (Secrets of users are not watched), so it is looked for again after a while.
type inputError struct {
	message string
}

func (e *inputError) Error() string { return e.message }

func badInput(format string, args ...any) error {
	return &inputError{message: fmt.Sprintf(format, args...)}
}

// resolve returns spec with the contents of all Secrets that it refers to, and templates rendered.
// controlPlaneVersion is empty when the Cluster's control plane does not tell one.
func (r *Reconciler) resolve(ctx context.Context, namespace string, spec bootstrapv1.KubeadmConfigSpec, controlPlaneVersion string) (bootstrapv1.KubeadmConfigSpec, error) {
	out := *spec.DeepCopy()
	for i := range out.Files {
		file := &out.Files[i]
		field := fmt.Sprintf("spec.files[%d] (%s)", i, file.Path)
		if file.ContentFrom.IsDefined() {
			data, err := r.secretValue(ctx, namespace, file.ContentFrom.Secret.Name, file.ContentFrom.Secret.Key, field+".contentFrom")
			if err != nil {
				return out, err
			}
			file.Content, file.ContentFrom = string(data), bootstrapv1.FileSource{}
		}
		if file.ContentFormat == bootstrapv1.FileContentFormatTemplate {
			content, err := renderTemplate(file.Content, controlPlaneVersion)
			if err != nil {
				return out, badInput("%s.content is no valid template: %s: correct it", field, err)
			}
			file.Content, file.ContentFormat = content, ""
		}
	}
	for i := range out.Users {
		user := &out.Users[i]
		if !user.PasswdFrom.IsDefined() {
			continue
		}
		field := fmt.Sprintf("spec.users[%d] (%s).passwdFrom", i, user.Name)
		data, err := r.secretValue(ctx, namespace, user.PasswdFrom.Secret.Name, user.PasswdFrom.Secret.Key, field)
		if err != nil {
			return out, err
		}
		user.Passwd, user.PasswdFrom = string(data), bootstrapv1.PasswdSource{}
	}
	return out, nil
}

func (r *Reconciler) secretValue(ctx context.Context, namespace, name, key, field string) ([]byte, error) {
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, badInput("%s: Secret %q does not exist in namespace %q: create it", field, name, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: get Secret %q: %w", field, name, err)
	}
	data, ok := secret.Data[key]
	if !ok {
		return nil, badInput("%s: Secret %q has no key %q: add it", field, name, key)
	}
	return data, nil
}

// renderTemplate renders a file's content with what Cluster API promises to such templates:
// .controlPlane.version, if known. Its errors are shown in conditions, so they quote nothing of the content.
func renderTemplate(content, controlPlaneVersion string) (string, error) {
	parsed, err := template.New("content").Parse(content)
	if err != nil {
		return "", templateError(err, "cannot be parsed")
	}
	values := map[string]any{}
	if controlPlaneVersion != "" {
		values["controlPlane"] = map[string]any{"version": controlPlaneVersion}
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, values); err != nil {
		return "", templateError(err, "cannot be evaluated")
	}
	return out.String(), nil
}

// templatePlace matches the place that text/template puts before each error it has one for.
var templatePlace = regexp.MustCompile(`^template: content:(\d+):`)

// templateError keeps the line of an error of text/template, and drops the words: they quote the content, which may
// come from a Secret.
func templateError(err error, what string) error {
	if place := templatePlace.FindStringSubmatch(err.Error()); place != nil {
		return fmt.Errorf("line %s %s", place[1], what)
	}
	return errors.New("it " + what)
}
