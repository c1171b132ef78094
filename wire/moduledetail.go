package wire

// A ModuleDetail is the API's description of a version of a module.
type ModuleDetail struct {
	Listed

	// Root is the module itself. Submodules and Examples are other modules in its
	// package.
	Root                 ModulePart
	Submodules, Examples []ModulePart

	// Systems that have a module of this namespace and name.
	Systems []string

	// Versions, oldest first (checklist 116).
	Versions []string

	// Deprecation of this version; nil if it is not deprecated.
	Deprecation *Deprecation
}

// A ModulePart is a module in a package.
type ModulePart struct {
	Path         string             `json:"path"` // empty for the root
	Name         string             `json:"name"`
	Readme       string             `json:"readme"`
	Empty        bool               `json:"empty"`
	Inputs       []ModuleInput      `json:"inputs"`
	Outputs      []ModuleOutput     `json:"outputs"`
	Dependencies []ModuleDependency `json:"dependencies"`
	Providers    []ModuleProvider   `json:"provider_dependencies"`
	Resources    []ModuleResource   `json:"resources"`
}

// A ModuleInput is a variable. Its default is JSON in a string, which is empty if there
// is no default (checklist 113).
type ModuleInput struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Default     string `json:"default"`
	Required    bool   `json:"required"`
}

// A ModuleOutput is a value that a module returns.
type ModuleOutput struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// A ModuleDependency is a call of another module.
type ModuleDependency struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Version string `json:"version"`
}

// A ModuleProvider is a provider that a module requires, by its local name.
type ModuleProvider struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Source    string `json:"source"`
	Version   string `json:"version"`
}

// A ModuleResource is a resource that a module manages.
type ModuleResource struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// written returns the part with empty lists instead of nil.
func (p ModulePart) written() ModulePart {
	p.Inputs, p.Outputs, p.Dependencies = emptied(p.Inputs), emptied(p.Outputs), emptied(p.Dependencies)
	p.Providers, p.Resources = emptied(p.Providers), emptied(p.Resources)
	return p
}

func writtenParts(parts []ModulePart) []ModulePart {
	list := make([]ModulePart, len(parts))
	for i, p := range parts {
		list[i] = p.written()
	}
	return list
}

// EncodeModuleDetail returns the answer to {modules.v1}/NAMESPACE/NAME/SYSTEM, with or
// without /VERSION.
func EncodeModuleDetail(d *ModuleDetail) *Document {
	return documentOf(struct {
		moduleHead
		Root        ModulePart   `json:"root"`
		Submodules  []ModulePart `json:"submodules"`
		Examples    []ModulePart `json:"examples"`
		Providers   []string     `json:"providers"`
		Versions    []string     `json:"versions"`
		Deprecation *Deprecation `json:"deprecation"`
	}{d.moduleHead(), d.Root.written(), writtenParts(d.Submodules), writtenParts(d.Examples), emptied(d.Systems), emptied(d.Versions), d.Deprecation})
}
