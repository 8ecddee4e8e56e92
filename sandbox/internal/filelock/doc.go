// Package filelock lets two processes agree on who does something: who builds a
// program into the cache, who brings up the sandbox of a directory. A lock goes
// when its holder does, so that a crash leaves none.
package filelock
