package tree

import "time"

// WithChanges returns the stamp of the files in a folder, with the last time at which a name in
// one of dirs was removed or added, if that was later. Only local file systems keep this time:
// others make one up, and then a folder might never count as unchanged.
func (p Part) WithChanges(s Stamp, folder string, dirs []string, taken time.Time) Stamp {
	if !p.IsOnDisk() || !p.KeepsInodes(folder) {
		return s
	}
	now := taken.UnixNano()
	for _, dir := range dirs {
		info, err := p.Lookup(dir)
		if err != nil {
			s.Changed = max(s.Newest(), now) // the next scan sees the new state
			continue
		}
		if t := info.ModTime().UnixNano(); t <= now { // a later time says nothing of the folder's age
			s.Changed = max(s.Newest(), t)
		}
	}
	return s
}
