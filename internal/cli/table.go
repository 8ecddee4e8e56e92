package cli

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Column is a column of a table; a wide one shows with -o wide only.
type Column struct {
	Name string
	Wide bool
}

// Columns are the columns of a table.
type Columns []Column

// Table returns an empty table with these columns.
func (c Columns) Table() *metav1.Table {
	table := &metav1.Table{}
	for _, column := range c {
		priority := int32(0)
		if column.Wide {
			priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions,
			metav1.TableColumnDefinition{Name: column.Name, Type: "string", Priority: priority})
	}
	return table
}

// AddRow adds the row of obj to table. An empty cell is shown as <none>, as
// kubectl does, so that columns stay countable for awk.
func AddRow(table *metav1.Table, obj client.Object, cells ...string) {
	row := metav1.TableRow{Object: runtime.RawExtension{Object: obj}}
	for _, cell := range cells {
		if cell == "" {
			cell = "<none>"
		}
		row.Cells = append(row.Cells, cell)
	}
	table.Rows = append(table.Rows, row)
}

// Age is the time since when, as kubectl writes it: 5m, 3d4h.
func Age(now, when time.Time) string {
	if when.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(when))
}

// Count is "ready/desired"; an unknown count is a question mark.
func Count(ready, desired *int32) string {
	return count(ready) + "/" + count(desired)
}

func count(n *int32) string {
	if n == nil {
		return "?"
	}
	return strconv.Itoa(int(*n))
}
