// Package watches adds watches of any provider's kinds to controllers that run already.
//
// In: a controller and the kinds that references name. Out: events in its queue. It stands apart from contract because it
// needs a manager, and the plugins, which read contract's fields too, need none.
package watches
