package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/millwright-dev/millwright/internal/apply"
)

// printed is what the output says of each action. kubectl says the same of a
// server-side apply, whether it creates or changes.
var printed = map[apply.Action]string{
	apply.ActionCreate:    "serverside-applied",
	apply.ActionConfigure: "serverside-applied",
	apply.ActionUnchanged: "unchanged",
	apply.ActionRecreate:  "recreated",
	apply.ActionPrune:     "pruned",
	apply.ActionRetain:    "retained",
}

// printAction writes the line of one object. One that was only struck off the inventory has none.
func printAction(out io.Writer, id apply.ID, action apply.Action, suffix string) {
	if word := printed[action]; word != "" {
		fmt.Fprintf(out, "%s %s%s\n", id, word, suffix)
	}
}

// printRemoval is printAction for an uninstall: what an install prunes, it deletes.
func printRemoval(out io.Writer, id apply.ID, action apply.Action, suffix string) {
	if action == apply.ActionPrune {
		fmt.Fprintf(out, "%s deleted%s\n", id, suffix)
		return
	}
	printAction(out, id, action, suffix)
}

// summary counts what a plan did.
func summary(plan *apply.Plan) string {
	parts := []string{fmt.Sprintf("%d objects", len(plan.Changes))}
	for _, count := range []struct {
		action apply.Action
		word   string
	}{
		{apply.ActionCreate, "created"}, {apply.ActionConfigure, "configured"}, {apply.ActionRecreate, "recreated"}, {apply.ActionUnchanged, "unchanged"},
		{apply.ActionPrune, "pruned"}, {apply.ActionRetain, "retained"},
	} {
		if n := plan.Count(count.action); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, count.word))
		}
	}
	return strings.Join(parts, ", ")
}
