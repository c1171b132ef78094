package lockfile

import "slices"

// A call is recorded if init has been run since it was written: modules.json then has a record of
// it, and of all modules that the called module needs. The key of the record has the names of the
// calls that lead there, with dots between them.

// A site is where a module is called: the calling module, and the name of the call in it.
type site struct {
	in   place
	name string
}

// A callGraph knows the sites that lead to each module.
type callGraph struct {
	root  place
	local map[place][]site   // calls of local modules, by the called one
	calls map[string][]site  // calls of modules of registries, by ModuleCall.String
	added map[place][]string // such calls whose packages were added, by the called module
}

func newCallGraph() callGraph {
	return callGraph{local: make(map[place][]site), calls: make(map[string][]site), added: make(map[place][]string)}
}

// callers returns the calls of a module.
func (g *callGraph) callers(of place) []site {
	callers := slices.Clone(g.local[of])
	for _, call := range g.added[of] {
		callers = append(callers, g.calls[call]...)
	}
	return callers
}

// eachKey calls visit with the keys of a call, until visit returns false. A call has several keys
// if the module that it is in is called several times. eachKey returns false if visit did, or if
// there are too many keys.
func (g *callGraph) eachKey(of site, visit func(key string) bool) bool {
	steps := 0
	var follow func(of site, below string, way []place) bool
	follow = func(of site, below string, way []place) bool {
		if steps++; steps > maxModules {
			return false
		}
		key := of.name + below
		if of.in == g.root {
			return visit(key)
		}
		if slices.Contains(way, of.in) { // clients refuse a module that calls itself
			return true
		}
		way = append(way, of.in)
		for _, caller := range g.callers(of.in) {
			if !follow(caller, "."+key, way) {
				return false
			}
		}
		return true
	}
	return follow(of, "", nil)
}

// IsRecorded reports whether init has been run since a part of the configuration was written that
// calls a module.
func (c *Configuration) IsRecorded(u Unresolved) bool {
	return u.call && c.areRecorded([]site{u.site}, func(r installedRecord) bool {
		_, _, notRegistry := parseModuleSource(u.source, c.tofu)
		switch {
		case u.source == "": // an expression, which may lead anywhere
			return true
		case isLocal(u.source):
			return isLocal(r.Source)
		case notRegistry == nil:
			return r.Version != ""
		}
		return r.Version == "" && !isLocal(r.Source) // clients write it in another form
	})
}

// IsRecordedCall reports whether init has been run since the calls of a registry's module were
// written, wherever they are, and has installed a version that they allow.
func (c *Configuration) IsRecordedCall(call ModuleCall) bool {
	return c.areRecorded(c.graph.calls[call.String()], func(r installedRecord) bool {
		a, _, err := parseModuleSource(r.Source, c.tofu)
		// The other client, whose default hostname differs, may have written the file.
		return err == nil && a.WithHostname("") == call.Address.WithHostname("") && call.Allow(r.Version)
	})
}

// areRecorded reports whether the calls at all sites have records that fit.
func (c *Configuration) areRecorded(sites []site, fits func(installedRecord) bool) bool {
	for _, s := range sites {
		found := false
		if !c.graph.eachKey(s, func(key string) bool {
			r, recorded := c.records[key]
			found = recorded && fits(r)
			return found
		}) || !found {
			return false
		}
	}
	return len(sites) > 0
}
