// Package rootfs maps the file system that a guest believes in onto the folder
// that holds it. A path such as /etc/kubernetes/pki goes in, the path below the
// guest's own folder comes out; text that names the latter is turned back, so
// that consoles, manifests and ConfigMaps read as on a machine of its own.
// It knows nothing of what the files mean.
package rootfs
