// Package members follows the objects of add-ons on workload clusters.
//
// In: a connection to a cluster, and the kinds of object to look at. Out: word of each change of an object that belongs
// to a set of package apply, and what is known of it now. Only metadata is watched: it tells who owns which field, and
// so whether an object is still as it was applied, at a fraction of the size.
//
// The package makes no request but its watches, and decides nothing.
package members
