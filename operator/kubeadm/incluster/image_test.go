package incluster

import "testing"

func TestAnImageIsMovedPartByPart(t *testing.T) {
	const digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	cases := map[string]struct{ image, repository, tag, want string }{
		"tag":                    {image: "registry.k8s.io/kube-proxy:v1.36.3", tag: "v1.37.2", want: "registry.k8s.io/kube-proxy:v1.37.2"},
		"repository":             {image: "registry.k8s.io/kube-proxy:v1.36.3", repository: "mirror.example.org:5000/k8s", tag: "v1.36.3", want: "mirror.example.org:5000/k8s/kube-proxy:v1.36.3"},
		"a registry with a port": {image: "mirror.example.org:5000/kube-proxy", tag: "v1.37.2", want: "mirror.example.org:5000/kube-proxy:v1.37.2"},
		"no registry":            {image: "kube-proxy:v1.36.3", tag: "v1.37.2", want: "kube-proxy:v1.37.2"},
		"a digest that holds":    {image: "r.example.org/coredns:v1.14.2" + digest, tag: "v1.14.2", want: "r.example.org/coredns:v1.14.2" + digest},
		"a digest that does not": {image: "r.example.org/coredns:v1.14.2" + digest, tag: "v1.14.6", want: "r.example.org/coredns:v1.14.6"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parseImage(tc.image); got.String() != tc.image {
				t.Errorf("%s is written as %s", tc.image, got)
			}
			if got := parseImage(tc.image).at(tc.repository, tc.tag).String(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAVendorsTagStillTellsTheRelease(t *testing.T) {
	for tag, want := range map[string]string{
		"v1.14.6": "1.14.6", "1.14.6": "1.14.6", "v1.12.3-eksbuild.1": "1.12.3", "v1.11.3_vmware.2": "1.11.3", "latest": "", "": "",
	} {
		got := ""
		if version := release(tag); version != nil {
			got = version.String()
		}
		if got != want {
			t.Errorf("tag %q: got %q, want %q", tag, got, want)
		}
	}
}
