package main

import (
	"fmt"
	"time"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

// connection tells the reader of a view when the management cluster's API server
// stops answering: what is shown is then no longer what is.
type connection struct {
	lost func() *graph.Loss
	now  func() time.Time

	// since is when the loss that was told began; zero while there is none.
	since time.Time
}

// tellLoss returns check with what it shows and says completed by the loss of the
// follower's connection.
func tellLoss(follower *graph.Follower, check func() (cli.State, error)) func() (cli.State, error) {
	c := &connection{lost: follower.Lost, now: time.Now}
	return func() (cli.State, error) {
		state, err := check()
		if err != nil {
			return state, err
		}
		return c.complete(state), nil
	}
}

// complete adds the loss on top of a screen, whose end may not fit the terminal,
// and behind the changes, which came before it.
func (c *connection) complete(state cli.State) cli.State {
	if text := c.news(); text != "" {
		state.View.Changes = append(state.View.Changes, text)
	}
	if loss := c.lost(); loss != nil {
		silent := "the server has not answered for " + cli.Age(c.now(), loss.Since)
		state.View.Screen = append([]string{fmt.Sprintf("%s, this is what was before: %v", silent, loss.Err)}, state.View.Screen...)
		if state.Missing != "" {
			state.Missing = fmt.Sprintf("%s (%v); before: %s", silent, loss.Err, state.Missing)
		}
	}
	return state
}

// news is a line when the connection is lost or there again; else it is empty.
func (c *connection) news() string {
	loss := c.lost()
	switch {
	case loss != nil && c.since.IsZero():
		c.since = loss.Since
		return fmt.Sprintf("lost the connection to the server at %s: %v: trying again", loss.Since.Format(time.TimeOnly), loss.Err)
	case loss == nil && !c.since.IsZero():
		text := fmt.Sprintf("the server answers again, after %s", cli.Age(c.now(), c.since))
		c.since = time.Time{}
		return text
	}
	return ""
}
