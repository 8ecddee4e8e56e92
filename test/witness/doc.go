// Package witness writes a new key to a store again and again while a test does harm to it, and tells afterwards which of
// the writes that were acknowledged are lost, how many were not acknowledged, and for how long none was.
//
// In: a Store, which for a cluster is its API server by its virtual address. Out: a Report. It knows no machine and judges
// nothing but loss: how long an API server may be away is the reader's to say.
package witness
