package catalog

import "strings"

// A phrase is a run of words of a query that may be one name: people write "s3 bucket", and mean
// s3-bucket, aws_s3_bucket or s3bucket.
type phrase struct {
	from, to int    // the words, without the last
	names    []word // as names of addresses have it
	codes    []word // as configurations and texts do
}

// Bounds of phrases: of how many words they are, and in queries of how many words there are phrases of
// more than two.
const (
	maxPhrase      = 4
	maxFewOfPhrase = 5
)

// phrasesOf returns the phrases in the words of a query.
func phrasesOf(words []word) (phrases []phrase) {
	most := maxPhrase
	if len(words) > maxFewOfPhrase {
		most = 2
	}
	for from := range words {
		for to := from + 2; to <= min(len(words), from+most); to++ {
			if p := (phrase{from: from, to: to}); p.join(words[from:to], to == len(words)) {
				phrases = append(phrases, p)
			}
		}
	}
	return phrases
}

// join makes the forms of a phrase. The last word of a query may be the beginning of one, as while it is
// typed.
func (p *phrase) join(words []word, isLast bool) (ok bool) {
	texts := make([]string, len(words))
	for i := range words {
		if len(words[i].parts) != 1 {
			return false
		}
		texts[i] = words[i].text
	}
	form := func(text string, whole bool) word { return word{text: text, parts: []string{text}, whole: whole} }
	hyphenated, joined := strings.Join(texts, "-"), strings.Join(texts, "")
	if len(hyphenated) > maxToken {
		return false
	}
	p.names = []word{form(hyphenated, false), form(joined, true)}
	p.codes = []word{form(strings.Join(texts, "_"), !isLast), form(joined, true)}
	for _, other := range sameAs(hyphenated) {
		p.names, p.codes = append(p.names, form(other, true)), append(p.codes, form(other, true))
	}
	return true
}

// rankPhrase ranks rows for a phrase.
func (x *searchIndex) rankPhrase(p *phrase, k *ranker) {
	x.eachSegment(k, func(s *segment) {
		for i := range p.names {
			s.names.rank(&p.names[i], k, 0)
		}
		for i := range p.codes {
			s.words.rank(&p.codes[i], k, 0)
		}
	})
}

// inTwo returns the words for a word that texts may have as two.
func inTwo(text string) (others []word) {
	const least, most = 2, 24
	if len(text) > most || !isPlain(text) {
		return nil
	}
	for at := least; at <= len(text)-least; at++ {
		first, second := text[:at], text[at:]
		others = append(others,
			word{text: first + "-" + second, parts: []string{first, second}, whole: true, separate: true},
			word{text: first + "_" + second, parts: []string{first + "_" + second}, whole: true})
	}
	return others
}
