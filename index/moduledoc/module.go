package moduledoc

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// read reads a module from its files.
func (m *moduleFiles) read(at string) Module {
	r := reader{
		module: Module{Path: at, Problems: m.problems}, declared: make(map[string]int),
		required: make(map[string]Provider), users: make(map[string]string),
	}
	r.module.Readme = chooseReadme(m.readmes)
	for _, name := range readingOrder(slices.Collect(maps.Keys(m.configuration))) {
		if content := m.configuration[name]; content != nil {
			r.readFile(name, content)
		}
	}
	r.finish()
	return r.module
}

// readingOrder returns the files that clients read, in their order. Override files come
// last, and a .tofu file replaces the .tf file of its name.
func readingOrder(names []string) []string {
	replaced := func(name string) bool {
		suffix := configurationSuffix(name)
		tofu := strings.Replace(suffix, ".tf", ".tofu", 1)
		return tofu != suffix && slices.Contains(names, strings.TrimSuffix(name, suffix)+tofu)
	}
	read := slices.DeleteFunc(slices.Clone(names), replaced)
	slices.SortFunc(read, func(a, b string) int {
		if overrides(a) != overrides(b) {
			if overrides(a) {
				return 1
			}
			return -1
		}
		return cmp.Compare(a, b)
	})
	return read
}

// overrides reports whether a file overrides blocks in other files.
func overrides(name string) bool {
	name = strings.TrimSuffix(name, configurationSuffix(name))
	return name == "override" || strings.HasSuffix(name, "_override")
}

// modes are the kinds of resources in display order.
var modes = []Mode{Managed, Data, Ephemeral}

// A reader reads the files of one module in their order.
type reader struct {
	module   Module
	declared map[string]int      // index of each declared block, by kind and name
	required map[string]Provider // by local name
	users    map[string]string   // local names of the providers of the blocks that use one
	leftOut  []string            // kinds with too many blocks

	file     string // the file that is being read
	override bool
}

func (r *reader) problem(line int, text string) {
	if len(r.module.Problems) < maxProblems {
		r.module.Problems = append(r.module.Problems, Problem{File: r.file, Line: line, Text: text})
	}
}

// problemIn adds a problem with a block, whose name is the last argument of format.
func (r *reader) problemIn(b block, format string, arguments ...any) {
	if len(r.module.Problems) < maxProblems { // otherwise computing the line would be wasted
		arguments = append(arguments, shorten(strings.Join(b.labels, "."), 100))
		r.problem(b.line(), fmt.Sprintf(format, arguments...))
	}
}

// position returns where a block is, in the file that is being read.
func (r *reader) position(b block) Position { return Position{File: r.file, Line: b.line()} }

func (r *reader) readFile(name string, content []byte) {
	r.file, r.override = path.Join(r.module.Path, name), overrides(name)
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	parse := parseHCL
	if strings.HasSuffix(name, ".json") {
		parse = parseJSON
	} else {
		content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	}
	for b := range parse(content, r.problem) {
		r.readBody(b)
	}
}

func (r *reader) readBody(b body) {
	for _, terraform := range b.blocks("terraform", 0) {
		r.readSettings(terraform)
	}
	for _, provider := range b.blocks("provider", 1) {
		r.readProvider(provider)
	}
	for _, variable := range b.blocks("variable", 1) {
		r.readVariable(variable)
	}
	for _, output := range b.blocks("output", 1) {
		r.readOutput(output)
	}
	for _, call := range b.blocks("module", 1) {
		r.readCall(call)
	}
	for _, mode := range modes {
		for _, resource := range b.blocks(string(mode), 2) {
			r.readResource(mode, resource)
		}
	}
}

// leaveOut calls report when the first block of a kind is left out.
func (r *reader) leaveOut(kind string, report func()) {
	if !slices.Contains(r.leftOut, kind) {
		r.leftOut = append(r.leftOut, kind)
		report()
	}
}

// declare returns the index of a block in the list of its kind: for a new block, the end of
// the list. ok is false if the block is left out.
func declare[T any](r *reader, list []T, limit int, kind string, b block) (at int, ok bool) {
	key := kind + " " + strings.Join(b.labels, ".")
	at, known := r.declared[key]
	switch {
	case known && !r.override:
		r.problemIn(b, "The %s %q is declared twice: clients reject the module.", kind)
		return 0, false
	case known:
		return at, true
	case r.override:
		r.problemIn(b, "There is no %s %q to override: clients reject the module.", kind)
	}
	if len(list) >= limit {
		r.leaveOut(kind, func() {
			r.problemIn(b, "There are more than %d blocks of the type %s: %q and those after it are left out.", limit, kind)
		})
		return 0, false
	}
	r.declared[strings.Clone(key)] = len(list)
	return len(list), true
}

// set sets a text to the value of an argument, if the block has the argument.
func set(to *string, v value, limit int) {
	if v != nil {
		*to = shorten(text(v), limit)
	}
}

func (r *reader) readVariable(b block) {
	at, ok := declare(r, r.module.Variables, maxVariables, "variable", b)
	if !ok {
		return
	}
	if at == len(r.module.Variables) {
		r.module.Variables = append(r.module.Variables, Variable{Name: shorten(b.labels[0], maxLabel), Nullable: true, At: r.position(b)})
	}
	v := &r.module.Variables[at]
	set(&v.Type, b.attribute("type"), maxText)
	if d := b.attribute("default"); d != nil {
		v.Default = r.defaultOf(v.Name, d)
	}
	set(&v.Description, b.attribute("description"), maxText)
	set(&v.Deprecated, b.attribute("deprecated"), maxText)
	v.Sensitive = isTrue(b.attribute("sensitive"), v.Sensitive)
	v.Ephemeral = isTrue(b.attribute("ephemeral"), v.Ephemeral)
	v.Nullable = isTrue(b.attribute("nullable"), v.Nullable)
	if r.override {
		return // clients keep the validation rules of the variable itself
	}
	for _, rule := range b.blocks("validation", 0) {
		if message := rule.attribute("error_message"); message != nil && len(v.Validations) < maxValidations {
			v.Validations = append(v.Validations, shorten(text(message), maxText))
		}
	}
}

// defaultOf returns a default as JSON, or as written.
func (r *reader) defaultOf(variable string, v value) string {
	literal, ok := v.literal()
	if ok && len(literal) <= maxText {
		return shorten(literal, maxText)
	}
	source := v.source()
	if ok || len(source) > maxText {
		r.problem(v.line(), fmt.Sprintf("The default of the variable %q is longer than %d bytes and is cut.", shorten(variable, 100), maxText))
	}
	return shorten(source, maxText)
}

func (r *reader) readOutput(b block) {
	at, ok := declare(r, r.module.Outputs, maxOutputs, "output", b)
	if !ok {
		return
	}
	if at == len(r.module.Outputs) {
		r.module.Outputs = append(r.module.Outputs, Output{Name: shorten(b.labels[0], maxLabel), At: r.position(b)})
	}
	o := &r.module.Outputs[at]
	set(&o.Description, b.attribute("description"), maxText)
	set(&o.Deprecated, b.attribute("deprecated"), maxText)
	o.Sensitive = isTrue(b.attribute("sensitive"), o.Sensitive)
	o.Ephemeral = isTrue(b.attribute("ephemeral"), o.Ephemeral)
}

func (r *reader) readCall(b block) {
	at, ok := declare(r, r.module.Calls, maxCalls, "module", b)
	if !ok {
		return
	}
	if at == len(r.module.Calls) {
		r.module.Calls = append(r.module.Calls, Call{Name: shorten(b.labels[0], maxLabel)})
	}
	c := &r.module.Calls[at]
	set(&c.Source, b.attribute("source"), maxLabel)
	set(&c.Version, b.attribute("version"), maxLabel)
}

func (r *reader) readResource(mode Mode, b block) {
	at, ok := declare(r, r.module.Resources, maxResources, string(mode), b)
	if !ok {
		return
	}
	provider := b.attribute("provider")
	if at == len(r.module.Resources) {
		r.module.Resources = append(r.module.Resources, Resource{
			Mode: mode, Type: shorten(b.labels[0], maxLabel), Name: shorten(b.labels[1], maxLabel), At: r.position(b),
		})
	} else if provider == nil {
		return
	}
	name, _, _ := strings.Cut(b.labels[0], "_") // as clients derive it
	if provider != nil {
		name, _, _ = strings.Cut(withoutInterpolation(text(provider)), ".")
	}
	r.users[string(mode)+" "+b.labels[0]+"."+b.labels[1]] = shorten(name, maxLabel)
}

// readSettings reads a terraform block.
func (r *reader) readSettings(b block) {
	if v := b.attribute("required_version"); v != nil {
		if r.override {
			r.module.RequiredVersion = ""
		}
		r.module.RequiredVersion = joinConstraints(r.module.RequiredVersion, shorten(text(v), maxLabel))
	}
	for _, required := range b.blocks("required_providers", 0) {
		required.attributes(func(name string, v value) bool {
			p := Provider{Name: shorten(name, maxLabel)}
			object := false
			v.members(func(key string, v value) bool {
				object = true
				switch key {
				case "source":
					set(&p.Source, v, maxLabel)
				case "version":
					set(&p.Version, v, maxLabel)
				case "configuration_aliases":
					p.Aliases = joinAliases(v.references())
				}
				return true
			})
			if literal, _ := v.literal(); !object && strings.HasPrefix(literal, `"`) { // the notation before Terraform 0.13
				set(&p.Version, v, maxLabel)
			}
			r.require(p)
			return true
		})
	}
}

// joinAliases lists aliases in order: as many as have place in a label.
func joinAliases(all []string) string {
	slices.Sort(all)
	all = slices.Compact(all)
	size := 0
	for i, a := range all {
		if size += len(a) + len(", "); size > maxLabel {
			all = all[:i]
			break
		}
	}
	return strings.Join(all, ", ")
}

// readProvider reads a provider block, which shows that the provider is used, and in older
// modules has its version.
func (r *reader) readProvider(b block) {
	p := Provider{Name: shorten(b.labels[0], maxLabel)}
	if v := b.attribute("version"); v != nil {
		set(&p.Version, v, maxLabel)
		r.require(p)
		return
	}
	r.users["provider "+p.Name] = p.Name
}

// require adds a required provider. A provider that is required twice has both constraints.
func (r *reader) require(p Provider) {
	before, twice := r.required[p.Name]
	switch {
	case !twice && len(r.required) == maxProviders:
		r.leaveOut("providers", func() {
			r.problem(0, fmt.Sprintf("The module requires more than %d providers: %q and those after it are left out.", maxProviders, shorten(p.Name, 100)))
		})
		return
	case twice && !r.override:
		p.Source = cmp.Or(before.Source, p.Source)
		p.Version = joinConstraints(before.Version, p.Version)
		p.Aliases = joinAliases(reference.FindAllString(before.Aliases+", "+p.Aliases, -1))
	}
	r.required[p.Name] = p
}

func joinConstraints(a, b string) string {
	switch {
	case a == b || b == "" || len(a) > maxLabel:
		return a
	case a == "":
		return b
	}
	return a + ", " + b
}

// finish completes the module when all files have been read.
func (r *reader) finish() {
	for i := range r.module.Resources {
		resource := &r.module.Resources[i]
		resource.Provider = r.users[string(resource.Mode)+" "+resource.Type+"."+resource.Name]
	}
	for _, name := range slices.Sorted(maps.Values(r.users)) {
		if _, known := r.required[name]; !known && name != "" {
			r.file = r.module.Path
			r.require(Provider{Name: name})
		}
	}
	delete(r.required, "terraform") // built into clients
	slices.SortStableFunc(r.module.Resources, func(a, b Resource) int {
		return cmp.Compare(slices.Index(modes, a.Mode), slices.Index(modes, b.Mode))
	})
	for _, name := range slices.Sorted(maps.Keys(r.required)) {
		p := r.required[name]
		p.Source = cmp.Or(p.Source, "hashicorp/"+name)
		r.module.Providers = append(r.module.Providers, p)
	}
}
