package policy

import (
	"fmt"
	"io/fs"
	"maps"
)

// Extend gives the policy together with what stands in a folder of the
// plant's: rules of its own, with their tests, and config.json with other
// values for parameters, and with those that its own rules read. The folder
// may be empty. A rule that the policy has cannot be replaced: whoever reads
// its name must know what it says.
func (s Source) Extend(dir fs.FS) (Source, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return Source{}, fmt.Errorf("policy: %w", err)
	}
	if len(entries) > 2*MaxModules {
		return Source{}, fault(codeTooLarge, "the policy has more than %d files", 2*MaxModules)
	}
	own, config := map[string]string{}, map[string]any{}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			return Source{}, fault(codeUnknownFile, "the policy has a folder in its folder").
				with("folder:  " + Visible(name)).hint("take it out")
		}
		if name == ConfigFile {
			text, err := readLimited(dir, name, MaxConfigSize)
			if err != nil {
				return Source{}, err
			}
			if config, err = ParseConfig(text); err != nil {
				return Source{}, err
			}
			continue
		}
		if _, taken := s.Modules[name]; taken {
			return Source{}, fault(codeInvalidRule, "the file %s has the name of one that ships", Visible(name)).
				hint("give the rule a name of its own, and set parameters of the one that ships in config.json")
		}
		text, err := readLimited(dir, name, MaxModuleSize)
		if err != nil {
			return Source{}, err
		}
		own[name] = string(text)
	}
	return s.with(own, config)
}

// with adds modules and sets parameters. Parameters that nobody knew before
// are for the added rules; without such they would do nothing.
func (s Source) with(own map[string]string, config map[string]any) (Source, error) {
	added, changed := map[string]any{}, map[string]any{}
	for name, value := range config {
		if _, known := s.Config[name]; known || len(own) == 0 {
			changed[name] = value
		} else {
			added[name] = value
		}
	}
	extended, err := s.Configure(changed)
	if err != nil {
		return Source{}, err
	}
	whole := Source{Modules: map[string]string{}, Config: added}
	maps.Copy(whole.Modules, extended.Modules)
	maps.Copy(whole.Modules, own)
	maps.Copy(whole.Config, extended.Config)
	return whole, whole.check()
}

// Adds tells whether the policy has files that another lacks: rules that have
// to be proven by their tests before anything is judged by them.
func (s Source) Adds(to Source) bool {
	for name := range s.Modules {
		if _, there := to.Modules[name]; !there {
			return true
		}
	}
	return false
}
