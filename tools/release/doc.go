// Command release makes what a release of Millwright consists of, in one folder and without a container engine:
//
//   - an archive of each plugin for each platform, with the licence, and a file of their sha256 sums;
//   - an SPDX document for each binary, from the modules that Go recorded in it;
//   - the krew manifests, from the templates in krew/;
//   - the manifests that install the operator, all of it or only add-ons and upgrades;
//   - the operator's image as an OCI layout: a static binary and root certificates, no shell, not root.
//
// The same commit and the same Go give the same bytes: paths and build ids are left out of binaries, and every time is
// that of the commit.
package main
