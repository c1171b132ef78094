package moduledoc

// perItem estimates the bytes of a struct besides its texts.
const perItem = 200

// Size estimates how many bytes of memory a Package takes.
func (p *Package) Size() int {
	size := p.Root.size()
	for _, modules := range [][]Module{p.Submodules, p.Examples} {
		for i := range modules {
			size += modules[i].size()
		}
	}
	return size
}

func (m *Module) size() int {
	items := 2 + len(m.Variables) + len(m.Outputs) + len(m.Calls) + len(m.Resources) + len(m.Providers) + len(m.Problems)
	size := items*perItem + len(m.Readme.Content)
	for _, v := range m.Variables {
		size += len(v.Name) + len(v.Type) + len(v.Default) + len(v.Description) + len(v.Deprecated)
		for _, message := range v.Validations {
			size += perItem + len(message)
		}
	}
	for _, o := range m.Outputs {
		size += len(o.Name) + len(o.Description) + len(o.Deprecated)
	}
	for _, c := range m.Calls {
		size += len(c.Name) + len(c.Source) + len(c.Version)
	}
	for _, r := range m.Resources {
		size += len(r.Type) + len(r.Name)
	}
	for _, p := range m.Providers {
		size += len(p.Name) + len(p.Source) + len(p.Version) + len(p.Aliases)
	}
	for _, p := range m.Problems {
		size += len(p.File) + len(p.Text)
	}
	return size
}
