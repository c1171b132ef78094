package catalog

// lookAtCandidates sums up the ranks of the rows that may be results. What lacks so many words at most has one
// of any set of words that is larger by one: of the rarest words, which few rows have. What is about an
// entry as a whole is about its parts, too.
func (s *Searcher) lookAtCandidates(q *Query, words []ranking, x *scratch) {
	looked := 0
	rest := 0 // how many rows the further words have
	for _, i := range x.order {
		switch {
		case x.lacking[i] != lacksWord:
		case looked <= x.allowed:
			looked++
			for _, row := range words[i].rows {
				s.look(q, words, row, x)
			}
		default:
			rest += len(words[i].rows)
		}
	}
	for _, row := range x.source.rows {
		s.look(q, words, row, x)
	}
	parts := 0
	for _, whole := range x.wholes {
		parts += int(whole.end - whole.first - 1)
	}
	switch {
	case parts == 0:
	case parts < rest:
		for _, whole := range x.wholes {
			for row := whole.first + 1; row < whole.end; row++ {
				if x.hasWord(words, row) {
					s.look(q, words, row, x)
				}
			}
		}
	default:
		for i := range words {
			if x.lacking[i] == lacksWord {
				for _, row := range words[i].rows {
					s.look(q, words, row, x)
				}
			}
		}
	}
}

// hasWord reports whether a row has one of the words that a result must have.
func (x *scratch) hasWord(words []ranking, row int32) bool {
	for i := range words {
		if x.lacking[i] == lacksWord && words[i].ranks[row] != notFound {
			return true
		}
	}
	return false
}

// look sums up the ranks of a row, and collects it if it is a result.
func (s *Searcher) look(q *Query, words []ranking, row int32, x *scratch) {
	if x.seen.has(row) {
		return
	}
	x.seen.add(row)
	owner := s.index.owner(row)
	if row == owner.first && owner.end > row+1 {
		x.wholes = append(x.wholes, owner)
	}
	sum := x.sum(words, row, owner.first)
	if sum > x.most() {
		return
	}
	if q.most { // what lacks more words is left out
		x.allowed = int(sum) / lacksWord
	}
	place := s.places[owner.number]
	switch {
	case row != owner.first && !s.entries[place].Address.IsModule():
		if q.Named == nil || q.Named.Slug != "" || !areNames(words, owner.first) {
			x.pages = append(x.pages, newResult(sum, place, row-owner.first))
		}
		return
	case row != owner.first:
		sum += int16(submodulePenalty)
	}
	if x.sums[place] < 0 {
		x.found = append(x.found, place)
		x.sums[place] = sum
	}
	x.sums[place] = min(x.sums[place], sum)
}
