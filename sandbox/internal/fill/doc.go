// Package fill puts values into the ${VARIABLES} of a cluster template.
//
// In: a template as clusterctl takes it and a lookup of names. Out: the filled
// text, or one error that names every variable without a value. ${NAME},
// ${NAME:=default}, ${NAME:-default} and the same without the colon are
// filled; a dollar sign before anything else belongs to a script in the
// template and is left alone.
package fill
