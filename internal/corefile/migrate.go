package corefile

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	"github.com/coredns/corefile-migration/migration"
)

// Migration is what becomes of a Corefile.
type Migration struct {
	// Corefile is the text for the new version: the very same where that can read it.
	Corefile string
	// Changed is set where the text had to be rewritten, which drops its comments.
	Changed bool
	// Notices tell what was removed, added, or is not known to the migration.
	Notices []string
}

// Migrate brings a Corefile from one version of CoreDNS to another, up or down.
// Versions are written with or without "v". One that is newer than all that the
// migration knows is taken for the newest that it knows.
func Migrate(corefile, from, to string) (*Migration, error) {
	known, err := releases()
	if err != nil {
		return nil, err
	}
	fromKnown, err := known.atOrBelow(from)
	if err != nil {
		return nil, err
	}
	toKnown, err := known.atOrBelow(to)
	if err != nil {
		return nil, err
	}
	m := &Migration{Corefile: corefile}
	if fromKnown.Equal(toKnown) {
		return m, nil
	}
	if fromKnown.GreaterThan(toKnown) {
		return m, m.down(fromKnown.String(), toKnown.String())
	}
	return m, m.up(fromKnown.String(), toKnown.String())
}

func (m *Migration) up(from, to string) error {
	if err := balanced(m.Corefile); err != nil {
		return err
	}
	notices, err := migration.Deprecated(from, to, m.Corefile)
	if err != nil {
		return fmt.Errorf("read the Corefile: %w", err)
	}
	unsupported, err := migration.Unsupported(from, to, m.Corefile)
	if err != nil {
		return fmt.Errorf("read the Corefile: %w", err)
	}
	needed := false
	for _, notice := range notices {
		// What is only deprecated still works: it stays until a version that removes it.
		needed = needed || notice.Severity != migration.SevDeprecated
		m.note(notice)
	}
	for _, notice := range unsupported {
		m.note(notice)
	}
	if !needed {
		return nil
	}
	if err := lossless(m.Corefile); err != nil {
		return err
	}
	text, err := migration.Migrate(from, to, m.Corefile, false)
	if err != nil {
		return fmt.Errorf("migrate the Corefile from CoreDNS %s to %s: %w", from, to, err)
	}
	m.Changed, m.Corefile = text != m.Corefile, text
	return nil
}

func (m *Migration) down(from, to string) error {
	if err := balanced(m.Corefile); err != nil {
		return err
	}
	// The library writes every Corefile that it brings down anew: what it only reformats stays as it is.
	down, err := migration.MigrateDown(from, to, m.Corefile)
	if err != nil {
		return fmt.Errorf("migrate the Corefile from CoreDNS %s down to %s: %w", from, to, err)
	}
	plain, err := reformat(m.Corefile)
	if err != nil {
		return err
	}
	if down == plain {
		return nil
	}
	if err := lossless(m.Corefile); err != nil {
		return err
	}
	m.Changed, m.Corefile = true, down
	return nil
}

// note adds a notice once: each release on the way repeats it.
func (m *Migration) note(notice migration.Notice) {
	what := "plugin " + notice.Plugin
	if notice.Option != "" {
		what = "option " + notice.Option + " of " + what
	}
	var text string
	switch notice.Severity {
	case migration.SevUnsupported:
		text = what + " is not known to the migration: see whether the new version still has it"
	case migration.SevNewDefault:
		text = what + " is added: it is part of the default since CoreDNS " + notice.Version
	case migration.SevDeprecated:
		text = what + " is deprecated since CoreDNS " + notice.Version
	default:
		text = what + " is " + notice.Severity + " in CoreDNS " + notice.Version
	}
	if notice.ReplacedBy != "" {
		text += ", replaced by " + notice.ReplacedBy
	}
	if !slices.Contains(m.Notices, text) {
		m.Notices = append(m.Notices, text)
	}
}

// versions are those that the migration knows, the oldest first.
type versions []*semver.Version

func releases() (versions, error) {
	var list versions
	for name := range migration.Versions {
		version, err := semver.NewVersion(name)
		if err != nil {
			return nil, fmt.Errorf("CoreDNS %q of the migration's table: %w", name, err)
		}
		list = append(list, version)
	}
	slices.SortFunc(list, (*semver.Version).Compare)
	return list, nil
}

// atOrBelow is the newest known version that is not newer than name: a release
// that the table does not have changed nothing in a Corefile.
func (v versions) atOrBelow(name string) (*semver.Version, error) {
	want, err := semver.NewVersion(name)
	if err != nil {
		return nil, fmt.Errorf("CoreDNS version %q: %w", name, err)
	}
	var found *semver.Version
	for _, version := range v {
		if version.Compare(want) <= 0 {
			found = version
		}
	}
	if found == nil {
		return nil, fmt.Errorf("CoreDNS %s is older than %s, the first that a Corefile can be migrated from", name, v[0])
	}
	return found, nil
}
