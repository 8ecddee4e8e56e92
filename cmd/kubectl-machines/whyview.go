package main

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph/diagnosis"
)

// mostBehind is how many of the troubles behind another are named one by one.
const mostBehind = 5

// drawDiagnoses returns the lines of what is wrong, cluster by cluster, broken at width columns; 0 leaves them as they are.
func drawDiagnoses(all []diagnosed, now time.Time, width int, palette palette) []string {
	var lines []string
	for i, d := range all {
		if i > 0 {
			lines = append(lines, "")
		}
		subject := "Cluster/" + d.Cluster
		if d.about != "" {
			subject = d.about + " of " + subject
		}
		switch len(d.Findings) {
		case 0:
			lines = append(lines, palette.bold(subject)+": "+palette.status(metav1.ConditionTrue, "nothing is wrong"))
			continue
		case 1:
			lines = append(lines, palette.bold(subject)+": one thing is wrong")
		default:
			lines = append(lines, fmt.Sprintf("%s: %d things are wrong; the first comes first", palette.bold(subject), len(d.Findings)))
		}
		for n := range d.Findings {
			lines = append(lines, "")
			lines = append(lines, drawFinding(&d.Findings[n], n+1, now, width, palette)...)
		}
	}
	return lines
}

func drawFinding(f *diagnosis.Finding, n int, now time.Time, width int, palette palette) []string {
	code := f.Code
	if f.Likely {
		code += " (likely)"
	}
	where := f.Object.String()
	if f.Object.Namespace != "" && f.Object.Cluster != "" {
		where = f.Object.Kind + "/" + f.Object.Namespace + "/" + f.Object.Name
	}
	if f.Object.Cluster != "" {
		where += " in the workload cluster"
	}
	if f.Since != nil {
		where += ", for " + cli.Age(now, *f.Since)
	}
	lines := []string{fmt.Sprintf("%d. %s: %s", n, palette.status(metav1.ConditionFalse, code), where)}
	indented := func(label, text string) {
		first := "   " + label
		for i, line := range strings.Split(text, "\n") {
			if i > 0 {
				first = "   "
			}
			lines = append(lines, breakLine(first+line, width)...)
		}
	}
	indented("", f.Cause)
	if f.Remedy != "" {
		indented(palette.bold("Do: "), f.Remedy)
	}
	for _, e := range f.Evidence {
		indented("Seen: ", e.Source+": "+firstLine(e.Text))
	}
	for i, b := range f.Behind {
		if i == mostBehind {
			indented("Behind it: ", fmt.Sprintf("%d more", len(f.Behind)-i))
			break
		}
		indented("Behind it: ", b.Code+" of "+b.Object.String())
	}
	return lines
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
