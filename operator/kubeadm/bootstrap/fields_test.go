package bootstrap

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/cloudinit"
	"github.com/millwright-dev/millwright/internal/kubeadm"
)

// elsewhere are the fields of a KubeadmConfig's spec that change nothing in what is rendered here, and why.
var elsewhere = map[string]string{
	"files[0].contentFrom.secret.name":               "read into content (content_test.go)",
	"files[0].contentFrom.secret.key":                "read into content (content_test.go)",
	"files[0].contentFormat":                         "rendered into content (content_test.go)",
	"users[0].passwdFrom.secret.name":                "read into passwd (content_test.go)",
	"users[0].passwdFrom.secret.key":                 "read into passwd (content_test.go)",
	"format":                                         "chooses the renderer",
	"ignition.containerLinuxConfig.strict":           "of Ignition only (internal/ignition)",
	"ignition.containerLinuxConfig.additionalConfig": "of Ignition only (internal/ignition)",
	"initConfiguration.bootstrapTokens[0].expires":   "refused (internal/kubeadm)",
	"diskSetup.partitions[0].layout":                 "excluded by diskLayout; partitions[1] has it",
}

// leaf is a field that holds a value, at its path in the spec.
type leaf struct {
	path  string
	value reflect.Value
}

// fill gives every field below v a value of its own, and returns them.
func fill(v reflect.Value, path string) []leaf {
	switch v.Interface().(type) {
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(noon.Add(time.Duration(len(path)) * time.Second))))
		return []leaf{{path, v}}
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("1")))
		return []leaf{{path, v}}
	case []byte:
		v.SetBytes([]byte(path))
		return []leaf{{path, v}}
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fill(v.Index(0), path+"[0]")
	case reflect.Map:
		item := reflect.New(v.Type().Elem()).Elem()
		fill(item, path)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), item)
		return []leaf{{path, v}}
	case reflect.Struct:
		var out []leaf
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			out = append(out, fill(v.Field(i), strings.Trim(path+"."+name, "."))...)
		}
		return out
	case reflect.String:
		v.SetString(path)
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(int64(len(path)))
	}
	return []leaf{{path, v}}
}

// change gives a field another value.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch value := v.Interface().(type) {
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(value.Add(time.Hour))))
		return
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("2")))
		return
	case []byte:
		v.SetBytes(append(slices.Clone(value), 'x'))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Map:
		v.Set(reflect.Zero(v.Type()))
	default:
		t.Fatalf("a field of kind %s: say how to change it", v.Kind())
	}
}

// renderAll returns all that a machine may be given of a spec.
func renderAll(t *testing.T, spec bootstrapv1.KubeadmConfigSpec) []byte {
	t.Helper()
	spec = *spec.DeepCopy()
	// What is read and judged before.
	for i := range spec.Files {
		spec.Files[i].ContentFrom = bootstrapv1.FileSource{}
	}
	for i := range spec.Users {
		spec.Users[i].PasswdFrom = bootstrapv1.PasswdSource{}
	}
	for i := range spec.InitConfiguration.BootstrapTokens {
		spec.InitConfiguration.BootstrapTokens[i].Expires = metav1.Time{}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	// Of a version whose feature gates are not known yet.
	first, err := kubeadm.InitConfig(spec, cluster, "v1.99.0")
	if err != nil {
		t.Fatal(err)
	}
	further, err := kubeadm.JoinConfig(spec.JoinConfiguration, "v1.99.0")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := discoveryFile(spec.JoinConfiguration.Discovery.File)
	if err != nil {
		t.Fatal(err)
	}
	data, err := cloudinit.Render(cloudinit.Input{Command: cloudinit.Init, Config: first, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(data, "%s\n%s", further, kubeconfig.Content)
}

func TestEveryFieldOfAKubeadmConfigReachesTheMachine(t *testing.T) {
	var spec bootstrapv1.KubeadmConfigSpec
	leaves := fill(reflect.ValueOf(&spec).Elem(), "")
	// The two ways of laying out a disk exclude each other.
	leaves = slices.DeleteFunc(leaves, func(l leaf) bool { return strings.HasPrefix(l.path, "diskSetup.partitions") })
	spec.DiskSetup.Partitions = make([]bootstrapv1.Partition, 2)
	leaves = append(leaves, fill(reflect.ValueOf(&spec.DiskSetup.Partitions[0]).Elem(), "diskSetup.partitions[0]")...)
	spec.DiskSetup.Partitions[1] = bootstrapv1.Partition{Device: "/dev/sdb", Layout: new(true)}
	leaves = append(leaves, leaf{"diskSetup.partitions[1].layout", reflect.ValueOf(spec.DiskSetup.Partitions[1].Layout).Elem()})

	before := renderAll(t, spec)
	if len(leaves) < 100 {
		t.Fatalf("only %d fields were found", len(leaves))
	}
	for _, of := range leaves {
		t.Run(of.path, func(t *testing.T) {
			was := reflect.New(of.value.Type()).Elem()
			was.Set(of.value)
			defer of.value.Set(was)
			change(t, of.value)
			reason, excepted := elsewhere[of.path]
			changed := !bytes.Equal(before, renderAll(t, spec))
			switch {
			case !changed && !excepted:
				t.Error("it changes nothing on the machine")
			case changed && excepted:
				t.Errorf("it changes something, but is excepted: %s", reason)
			}
		})
	}
}
