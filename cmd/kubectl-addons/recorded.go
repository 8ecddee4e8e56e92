package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
)

// asRecorded makes each request that says nothing of version and parameters the
// one that is installed. Those that are not installed come back as names.
func (o *installOptions) asRecorded(ctx context.Context, engine *apply.Engine) (absent []string, err error) {
	for i := range o.wanted {
		wanted := &o.wanted[i]
		record, err := engine.Record(ctx, wanted.addon.Name)
		var missing *apply.NotInstalledError
		if errors.As(err, &missing) {
			absent = append(absent, wanted.addon.Name)
			continue
		}
		if err != nil {
			return nil, err
		}
		if wanted.version == autoVersion {
			if _, err := wanted.addon.Version(record.Version); err != nil {
				return nil, fmt.Errorf("%s is installed as %s: %w: use a release of this tool, or a catalogue, that has it", wanted.addon.Name, record.Version, err)
			}
			wanted.version = record.Version
			if len(wanted.values) == 0 {
				wanted.values = record.Parameters
			}
			if wanted.custom.Empty() {
				if wanted.custom, err = recordedCustomization(wanted.addon.Name, record.Customization); err != nil {
					return nil, err
				}
			}
		}
	}
	return absent, nil
}

// everything makes all add-ons that are installed and in the catalogue the wanted ones.
func (o *installOptions) everything(ctx context.Context, engine *apply.Engine, catalogue *bundle.Catalogue) error {
	records, err := engine.Records(ctx)
	if err != nil {
		return err
	}
	for _, record := range records {
		addon, err := catalogue.Addon(record.Name)
		if err != nil {
			fmt.Fprintf(o.ErrOut, "warning: %s %s is left out: the catalogue does not have it\n", record.Name, record.Version)
			continue
		}
		o.wanted = append(o.wanted, request{addon: addon, version: autoVersion})
	}
	return nil
}
