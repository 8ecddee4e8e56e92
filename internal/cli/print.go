package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Formats that show a table. "table" is the default and may be left out.
const (
	formatTable = "table"
	formatWide  = "wide"
)

// PrintFlags are -o, --template, --no-headers and --show-managed-fields, with
// kubectl's meaning, for a command that shows objects.
type PrintFlags struct {
	Output    string
	NoHeaders bool
	// WithNamespace adds the NAMESPACE column to tables (-A).
	WithNamespace bool

	jsonYAML *genericclioptions.JSONYamlPrintFlags
	name     *genericclioptions.NamePrintFlags
	template *genericclioptions.KubeTemplatePrintFlags
	columns  *get.CustomColumnsPrintFlags
	table    printers.ResourcePrinter
}

// NewPrintFlags returns flags that print a table unless told otherwise.
func NewPrintFlags() *PrintFlags {
	return &PrintFlags{
		jsonYAML: genericclioptions.NewJSONYamlPrintFlags(),
		name:     genericclioptions.NewNamePrintFlags(""),
		template: genericclioptions.NewKubeTemplatePrintFlags(),
		columns:  get.NewCustomColumnsPrintFlags(),
	}
}

// AddFlags adds the flags to cmd.
func (f *PrintFlags) AddFlags(cmd *cobra.Command) {
	formats := f.formats()
	cmd.Flags().StringVarP(&f.Output, "output", "o", f.Output,
		fmt.Sprintf("Output format. One of: (%s).", strings.Join(formats, ", ")))
	cmd.Flags().BoolVar(&f.NoHeaders, "no-headers", f.NoHeaders, "Print a table or custom columns without the line of headers.")
	f.jsonYAML.AddFlags(cmd)
	f.template.AddFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

func (f *PrintFlags) formats() []string {
	return slices.Concat([]string{formatTable, formatWide}, f.name.AllowedFormats(), f.jsonYAML.AllowedFormats(),
		f.columns.AllowedFormats(), f.template.AllowedFormats())
}

// Table tells whether a table will be printed.
func (f *PrintFlags) Table() bool {
	return f.format() == formatTable || f.format() == formatWide
}

func (f *PrintFlags) format() string {
	switch {
	case f.Output != "":
		return f.Output
	case f.template.TemplateArgument != nil && *f.template.TemplateArgument != "":
		return "go-template"
	}
	return formatTable
}

// Validate refuses an output format that does not exist, or a template that
// does not parse: an error of the command line.
func (f *PrintFlags) Validate() error {
	if f.Table() {
		return nil
	}
	_, err := f.objectPrinter()
	return err
}

// tablePrinter is the same for all calls: it remembers the headers it printed.
func (f *PrintFlags) tablePrinter() printers.ResourcePrinter {
	if f.table == nil {
		f.table = printers.NewTablePrinter(printers.PrintOptions{
			NoHeaders: f.NoHeaders, Wide: f.format() == formatWide, WithNamespace: f.WithNamespace,
		})
	}
	return f.table
}

// objectPrinter prints objects whole; its errors are those of the command line.
func (f *PrintFlags) objectPrinter() (printers.ResourcePrinter, error) {
	format := f.format()
	f.columns.NoHeaders = f.NoHeaders
	if f.template.TemplateArgument != nil {
		f.columns.TemplateArgument = *f.template.TemplateArgument
	}
	for _, flags := range []interface {
		ToPrinter(string) (printers.ResourcePrinter, error)
	}{f.template, f.jsonYAML, f.name, f.columns} {
		printer, err := flags.ToPrinter(format)
		switch {
		case genericclioptions.IsNoCompatiblePrinterError(err):
			continue
		case err != nil:
			return nil, UsageErrorf("--output: %w", err)
		}
		return printer, nil
	}
	return nil, UsageErrorf("--output: %q is not one of: %s", format, strings.Join(f.formats(), ", "))
}

// Result is what a command shows.
type Result struct {
	// Objects are shown whole by json, yaml, name, templates and columns.
	Objects []client.Object
	// Single shows the only object as itself, not as a List of one: for a
	// command that was given its name.
	Single bool
	// Table makes the table; called only where one is shown.
	Table func() *metav1.Table
}

// Print writes result in the chosen format. Objects known to scheme get their
// apiVersion and kind. In table form the header is printed once for all calls
// with the same columns, so that rows of a watch can follow.
func (f *PrintFlags) Print(out io.Writer, scheme *runtime.Scheme, result Result) error {
	if f.Table() {
		return f.tablePrinter().PrintObj(result.Table(), out)
	}
	printer, err := f.objectPrinter()
	if err != nil {
		return err
	}
	items := make([]unstructured.Unstructured, 0, len(result.Objects))
	for _, obj := range result.Objects {
		item, err := toUnstructured(scheme, obj)
		if err != nil {
			return err
		}
		items = append(items, *item)
	}
	if result.Single && len(items) == 1 {
		return printer.PrintObj(&items[0], out)
	}
	list := &unstructured.UnstructuredList{Items: items}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	return printer.PrintObj(list, out)
}

// toUnstructured returns obj as the server would show it. Typed objects lose
// their apiVersion and kind when they are read.
func toUnstructured(scheme *runtime.Scheme, obj client.Object) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u, nil
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, fmt.Errorf("print %T: %w", obj, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("print %s %q: %w", gvk.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
