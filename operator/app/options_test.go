package app

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlagsThatMakeNoSenseAreRefusedByName(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"defaults":             {},
		"one group":            {args: []string{"--controllers=core"}},
		"several groups":       {args: []string{"--controllers=core,kubeadm", "-v", "4", "--log-format=console"}},
		"no group":             {args: []string{"--controllers="}, want: "--controllers is empty: name at least one of core, kubeadm, vsphere"},
		"unknown group":        {args: []string{"--controllers=core,azure"}, want: `--controllers: unknown group "azure"`},
		"no workers":           {args: []string{"--concurrency=0"}, want: "--concurrency is 0"},
		"unknown log format":   {args: []string{"--log-format=xml"}, want: `--log-format is "xml"`},
		"election, but no one": {args: []string{"--leader-elect", "--leader-elect-identity="}, want: "--leader-elect-identity is empty"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Validate = %v, want %q", err, tc.want)
			}
		})
	}
}
