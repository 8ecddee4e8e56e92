package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

// treeRow is a node of the tree before its columns are aligned. Its message goes
// below it: to the right there is no room for it on most terminals.
type treeRow struct {
	cells   [columns]string
	ready   metav1.ConditionStatus
	message []string
	// branches are drawn before each line of the message.
	branches string
}

// The columns of the tree.
const (
	columnName = iota
	columnReady
	columnReplicas
	columnUpToDate
	columnSince
	columnReason
	columns
)

var treeHeader = [columns]string{"NAME", "READY", "REPLICAS", "UP-TO-DATE", "SINCE", "REASON"}

// columnGap are the spaces between two columns.
const columnGap = 2

// drawTree returns the lines of the tree, aligned. Messages are broken at width
// columns; 0 leaves them as they are.
func drawTree(root *graph.Node, now time.Time, width int, palette palette) []string {
	rows := appendTree(nil, root, "", "", "", now)
	widths := columnWidths(rows)
	drawn := []string{alignCells(treeHeader, widths, func(_ int, cell string) string { return palette.bold(cell) })}
	for _, row := range rows {
		drawn = append(drawn, alignCells(row.cells, widths, func(column int, cell string) string {
			if column == columnReady {
				return palette.status(row.ready, cell)
			}
			return cell
		}))
		for _, message := range row.message {
			for _, part := range breakLine(message, width-utf8.RuneCountInString(row.branches)) {
				drawn = append(drawn, row.branches+part)
			}
		}
	}
	return drawn
}

// columnWidths measures the columns. UP-TO-DATE is left out (width 0) unless
// there are machines that are not: it is news only during a rollout.
func columnWidths(rows []treeRow) [columns]int {
	var widths [columns]int
	for i, title := range treeHeader {
		widths[i] = len(title)
	}
	rolling := false
	for _, row := range rows {
		for i, cell := range row.cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
		_, desired, _ := strings.Cut(row.cells[columnReplicas], "/")
		rolling = rolling || (row.cells[columnUpToDate] != "" && row.cells[columnUpToDate] != desired)
	}
	if !rolling {
		widths[columnUpToDate] = 0
	}
	return widths
}

// alignCells joins cells; style may colour a cell, which does not count as width.
func alignCells(cells [columns]string, widths [columns]int, style func(column int, cell string) string) string {
	var b strings.Builder
	gap := 0
	for i, cell := range cells {
		if widths[i] == 0 {
			continue
		}
		if cell == "" {
			gap += widths[i] + columnGap
			continue
		}
		b.WriteString(strings.Repeat(" ", gap))
		b.WriteString(style(i, cell))
		gap = widths[i] - utf8.RuneCountInString(cell) + columnGap
	}
	return b.String()
}

// appendTree adds node and what is below it. first is drawn before the name of
// the node, below before each line under it. above is what the nodes over it say:
// a message that only repeats it is left out, or one fault fills the screen.
func appendTree(rows []treeRow, node *graph.Node, first, below, above string, now time.Time) []treeRow {
	row := treeRow{ready: node.Ready, branches: below + "    "}
	if len(node.Children) > 0 {
		row.branches = below + "│   "
	}
	row.cells[columnName] = first + title(node)
	row.cells[columnReady] = string(node.Ready)
	if r := node.Replicas; r != nil {
		row.cells[columnReplicas] = cli.Count(r.Ready, r.Desired)
		if r.UpToDate != nil {
			row.cells[columnUpToDate] = strconv.Itoa(int(*r.UpToDate))
		}
	}
	if node.Since != nil {
		row.cells[columnSince] = cli.Age(now, *node.Since)
	}
	switch {
	case node.Ready != metav1.ConditionTrue && node.Ready != "":
		row.cells[columnReason] = node.Reason
		if !saidIn(above, node.Message) {
			row.message = messageLines(node.Message)
			above += node.Message + "\n"
		}
	case len(node.Doing) > 0:
		row.cells[columnReason] = strings.Join(node.Doing, ",")
		row.message = messageLines(node.Message)
	}
	if len(node.Names) > 0 {
		row.message = append(row.message, "see "+some(node.Names))
	}
	if node.Paused {
		row.message = append(row.message, "paused: no controller acts on it")
	}
	rows = append(rows, row)
	for i, child := range node.Children {
		branch, onward := "├─", "│ "
		if i == len(node.Children)-1 {
			branch, onward = "└─", "  "
		}
		rows = appendTree(rows, child, below+branch, below+onward, above, now)
	}
	return rows
}

// breakLine breaks text between words so that no part is longer than width; each
// part keeps the indentation of the text.
func breakLine(text string, width int) []string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " *"))]
	hanging := strings.Repeat(" ", len(indent))
	var parts []string
	line, length := indent, len(indent)
	for _, word := range strings.Fields(text[len(indent):]) {
		size := utf8.RuneCountInString(word)
		if length > len(indent) && width > 0 && length+1+size > width {
			parts = append(parts, line)
			line, length = hanging, len(hanging)
		}
		if length > len(indent) {
			line, length = line+" ", length+1
		}
		line, length = line+word, length+size
	}
	return append(parts, line)
}

// title is how a node is called: "ControlPlane - KubeadmControlPlane/prod".
func title(node *graph.Node) string {
	object := ""
	switch {
	case len(node.Names) > 0:
		object = fmt.Sprintf("%d %ss", len(node.Names), node.Kind)
	case node.Name != "":
		object = node.Kind + "/" + node.Name
	}
	if node.Kind == "Machine" && node.Phase != "" {
		object += " " + node.Phase
	}
	switch {
	case node.Role == "", node.Behind:
		return object
	case object == "":
		return node.Role
	}
	return node.Role + " - " + object
}

func messageLines(message string) []string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(message)) {
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return lines
}

// saidIn tells whether each line of a message is part of a text, be it in another
// place of a list.
func saidIn(text, message string) bool {
	for _, line := range messageLines(message) {
		if !strings.Contains(text, strings.TrimLeft(line, " *")) {
			return false
		}
	}
	return true
}

// some names the first few of many.
func some(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:few], ", ") + ", ..."
}

// palette colours words, or not.
type palette struct{ on bool }

func (p palette) bold(text string) string { return p.paint("1", text) }

func (p palette) status(ready metav1.ConditionStatus, text string) string {
	switch ready {
	case metav1.ConditionTrue:
		return p.paint("32", text)
	case metav1.ConditionFalse:
		return p.paint("31", text)
	case metav1.ConditionUnknown:
		return p.paint("33", text)
	}
	return text
}

// paint uses the colours of ECMA-48, which every terminal shows in its own shade.
func (p palette) paint(code, text string) string {
	if !p.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
