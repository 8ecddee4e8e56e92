package bundle

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// FuzzLoadAndRender feeds a bundle's three files to everything that reads them. A
// bundle is loaded or refused with the name of one of its files; what is loaded
// is rendered or refused, and neither may panic.
func FuzzLoadAndRender(f *testing.F) {
	const addon = "apiVersion: bundle.millwright.dev/v1alpha1\nkind: Addon\nname: demo\ndescription: d\ncategory: other\n" +
		"parameters: {type: object, properties: {size: {type: integer}}}\n" +
		"versions:\n- {version: 1.0.0, kubernetes: '>=1.30', phase: after-workers}\n"
	const parameters = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: addon-parameters\n" +
		"  annotations: {config.kubernetes.io/local-config: 'true'}\ndata: {size: '3'}\n"
	for _, kustomization := range []string{
		"resources: [parameters.yaml]\n",
		"resources: [../../../etc/passwd]\n",
		"resources: [/etc/passwd]\n",
		"resources: ['https://example.com/x.yaml']\n",
		"resources: ['github.com/example/repository?ref=v1']\n",
		"resources: [../1.0.0]\n",
		"helmCharts: [{name: x}]\n",
		"generators: [x.yaml]\n",
		"a: &a [*a]\n",
		"configMapGenerator: [{name: x, files: [../../secret]}]\n",
		"patches: [{Path: ../../x}]\n",
	} {
		f.Add(addon, kustomization, parameters)
	}
	f.Add("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "", "")
	f.Fuzz(func(t *testing.T, addon, kustomization, parameters string) {
		catalogue, err := Load(fstest.MapFS{
			"demo/addon.yaml":               {Data: []byte(addon)},
			"demo/1.0.0/kustomization.yaml": {Data: []byte(kustomization)},
			"demo/1.0.0/parameters.yaml":    {Data: []byte(parameters)},
		})
		if err != nil {
			var mistake *FileError
			if !errors.As(err, &mistake) || !strings.HasPrefix(mistake.File, "demo/") {
				t.Errorf("the error names no file of the bundle: %v", err)
			}
			return
		}
		demo := catalogue.Addons()[0]
		for i := range demo.Versions {
			// Whether it renders is kustomize's to say; that it comes back is what counts here.
			_, _ = Render(Input{Addon: demo, Version: &demo.Versions[i]})
		}
	})
}
