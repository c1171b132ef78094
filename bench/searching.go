package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
)

// searchers ask at the same time.
const searchers = 8

// Of the tree that is searched.
const (
	modulesPerProvider = 5  // modules for each provider
	pagesEach          = 20 // of documentation, of a provider
	typesEach          = 4  // of resources, of a module
)

// searching asks a registry of many modules and providers for words of READMEs and names, by
// the API, and then for these and for types of resources and titles of documentation, as a
// search field does while its user types. Each query is new, so that no answer was encoded
// before.
func searching(ctx context.Context, l *lab, s subject) ([]row, error) {
	var texts []moduleText
	root, err := l.folder("search", func(dir string) (err error) {
		if texts, err = writeModuleTexts(dir, l.modules); err != nil {
			return err
		}
		return writeDocumentedProviders(dir, l.modules/modulesPerProvider)
	})
	if err != nil {
		return nil, err
	}
	if texts == nil { // they are the same for the other subject
		texts = moduleTexts(l.modules)
	}
	handler := l.registry(root)
	handler["ui"] = map[string]any{}
	c, err := l.caddy(ctx, s, "search", true, site{name: "registry", handler: handler})
	if err != nil {
		return nil, err
	}
	l.cleanup(c.stop)
	last := fmt.Sprintf("/v1/modules?limit=1&offset=%d", l.modules-1)
	if _, err := c.await(ctx, "registry", last, func(a *answer) bool { return a.ok() && bytes.Contains(a.body, []byte(`"id"`)) }); err != nil {
		return nil, err
	}
	documented := func(a *answer) bool { return a.ok() && bytes.Contains(a.body, []byte("/docs/")) }
	if _, err := c.await(ctx, "registry", "/search/suggestions?q="+pageName(l.modules/modulesPerProvider-1, pagesEach-1), documented); err != nil {
		return nil, err
	}
	if _, err := c.settled(ctx); err != nil { // what is asked for is read first; the documentation of others follows
		return nil, err
	}
	measured := func(path string, query func(*moduleText, *rand.Rand) string, of func([]time.Duration, time.Duration) time.Duration) measurement {
		return func(ctx context.Context) (value float64, err error) {
			err = l.profiled(ctx, c, s.name+"-search", func() error {
				took, cpu, err := l.search(ctx, c, texts, path, query)
				if err == nil {
					value = of(took, cpu).Seconds()
				}
				return err
			})
			return value, err
		}
	}
	p99 := func(took []time.Duration, _ time.Duration) time.Duration {
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	each := func(took []time.Duration, cpu time.Duration) time.Duration { return cpu / time.Duration(len(took)) }
	api := fmt.Sprintf("search over %s modules, %d at once: ", humanize.Comma(int64(l.modules)), searchers)
	all := fmt.Sprintf("suggestions from %s modules, %s providers and %s pages of documentation, %d at once: ",
		humanize.Comma(int64(l.modules)), humanize.Comma(int64(l.modules/modulesPerProvider)), humanize.Comma(int64(l.modules/modulesPerProvider*pagesEach)), searchers)
	const search, suggestions = "/v1/modules/search?q=", "/search/suggestions?q="
	return []row{
		{what: api + "p99", unit: "s", goal: goal{atMost: 0.01}, slowness: 2, cost: measured(search, (*moduleText).query, p99)},
		{what: api + "CPU time of an answer", unit: "s", slowness: 2, cost: measured(search, (*moduleText).query, each)},
		{what: all + "p99", unit: "s", goal: goal{atMost: 0.01}, slowness: 2, cost: measured(suggestions, (*moduleText).anyQuery, p99)},
		{what: all + "CPU time of an answer", unit: "s", slowness: 2, cost: measured(suggestions, (*moduleText).anyQuery, each)},
	}, nil
}

// search runs searchers, who ask again when they have an answer, until the server has
// used the CPU time of a slice. It returns how long each answer took, and the CPU time of all. The first answer, for which a searcher is made, does not count.
func (l *lab) search(ctx context.Context, c *caddy, texts []moduleText, path string, query func(*moduleText, *rand.Rand) string) (all []time.Duration, cpu time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := c.get(ctx, "registry", path+"network", ""); err != nil {
		return nil, 0, err
	}
	var (
		clients sync.WaitGroup
		mutex   sync.Mutex
		errs    []error
		done    = make(chan struct{})
	)
	for client := range searchers {
		conn, err := connect(ctx, target{address: c.addresses["registry"]})
		if err != nil {
			return nil, 0, err
		}
		random := rand.New(rand.NewPCG(uint64(client), uint64(time.Now().UnixNano())))
		clients.Go(func() {
			defer conn.Close()
			var took []time.Duration
			var err error
			for err == nil {
				select {
				case <-done:
					mutex.Lock()
					defer mutex.Unlock()
					all = append(all, took...)
					return
				default:
				}
				began := time.Now()
				if err = conn.find(path + url.QueryEscape(query(&texts[random.IntN(len(texts))], random))); err == nil {
					took = append(took, time.Since(began))
				}
			}
			mutex.Lock()
			defer mutex.Unlock()
			errs = append(errs, err)
		})
	}
	before := cpuTime(c.Process.Pid)
	for cpuTime(c.Process.Pid)-before < l.slice {
		time.Sleep(l.slice / 10)
	}
	close(done)
	clients.Wait()
	cpu = cpuTime(c.Process.Pid) - before
	switch err := errors.Join(errs...); {
	case err != nil:
		return nil, 0, err
	case len(all) == 0:
		return nil, 0, errors.New("no search was answered")
	}
	return all, cpu, nil
}

// find asks for the path of a query that finds something.
func (c *connection) find(path string) error {
	c.target.path = path
	c.request = c.target.request()
	response, err := c.ask()
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"id"`)) && !bytes.Contains(body, []byte(`"url"`)) {
		return fmt.Errorf("GET %s: %d: %.200s", c.target.path, response.StatusCode, body)
	}
	return nil
}

// A moduleText is the text of one of many modules.
type moduleText struct {
	namespace, name, system string
	words, inputs, types    []string
}

// anyQuery is a query, or something that users copy: a type of resources that a module
// creates, the name of one of the pages, or an address.
func (m *moduleText) anyQuery(random *rand.Rand) string {
	switch random.IntN(4) {
	case 0:
		return m.types[random.IntN(len(m.types))]
	case 1:
		return m.namespace + "/" + m.name + "/" + m.system
	}
	return m.query(random)
}

// query returns one to three words that find the module.
func (m *moduleText) query(random *rand.Rand) string {
	words := []string{m.words[random.IntN(len(m.words))]}
	for _, further := range [][]string{{m.system}, {m.namespace}, m.inputs, m.words} {
		if len(words) < 3 && random.IntN(3) == 0 {
			words = append(words, further[random.IntN(len(further))])
		}
	}
	return strings.Join(words, " ")
}

// moduleTexts returns the texts of that many modules: a README of sixty words, a few
// frequent and most rare, and twenty inputs.
func moduleTexts(count int) []moduleText {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		const vocabulary = 20_000
		n := int(vocabulary * random.Float64() * random.Float64() * random.Float64())
		syllables := []string{"net", "work", "sub", "data", "log", "ing", "ter", "form", "gate", "way", "ac", "count", "re", "gion", "zone", "er"}
		var b strings.Builder
		for n += 17; n > 0; n /= len(syllables) {
			b.WriteString(syllables[n%len(syllables)])
		}
		return b.String()
	}
	texts := make([]moduleText, count)
	for i := range texts {
		m := &texts[i]
		m.namespace, m.system = fmt.Sprintf("team%02d", i%50), []string{"aws", "azurerm", "google"}[i%3]
		m.name = fmt.Sprintf("%s-%d", word(), i)
		for range 60 {
			m.words = append(m.words, word())
		}
		for range 20 {
			m.inputs = append(m.inputs, word()+"_"+word())
		}
		for range typesEach {
			m.types = append(m.types, pageName(random.IntN(max(count/modulesPerProvider, 1)), random.IntN(pagesEach)))
		}
	}
	return texts
}

func writeModuleTexts(root string, count int) ([]moduleText, error) {
	texts := moduleTexts(count)
	for i := range texts {
		m := &texts[i]
		var configuration strings.Builder
		for _, input := range m.inputs {
			fmt.Fprintf(&configuration, "variable %q {}\n", input)
		}
		for _, typ := range m.types {
			fmt.Fprintf(&configuration, "resource %q \"this\" {}\n", typ)
		}
		files := []string{
			"README.md", "# " + m.name + "\n\n" + strings.Join(m.words, " ") + ".\n",
			"main.tf", configuration.String(),
		}
		if i%2 == 0 {
			files = append(files, "modules/"+m.words[0]+"/main.tf", "variable \"name\" {}\n")
		}
		file := filepath.Join(root, "modules", m.namespace, m.name, m.system, "1.0.0.tar.gz")
		if _, err := writeFile(file, func(w io.Writer) error { return writeModule(w, files...) }); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// pageTopics are topics of pages of documentation.
var pageTopics = []string{"network", "bucket", "policy", "cluster", "instance", "group", "role", "record", "queue", "topic", "rule", "table", "function", "user", "key", "secret", "disk", "image", "route", "gateway"}

// pageName is the name of a page of a provider's documentation: the type of its resources.
func pageName(provider, page int) string {
	topic := func(n int) string { return pageTopics[n%len(pageTopics)] }
	return fmt.Sprintf("cloud_%s_%s_%d", topic(page), topic(provider+page*7), provider%97)
}

// writeDocumentedProviders writes providers with documentation. Their packages are one file.
func writeDocumentedProviders(root string, count int) error {
	first := make(map[string]writtenPackage)
	for i := range count {
		p := provider{hostname: "registry.terraform.io", namespace: fmt.Sprintf("cloud%04d", i), typ: "cloud", size: 1000, linked: true}
		dir := filepath.Join(p.dir(root), "1.0.0")
		if _, err := p.writePackage(dir, "1.0.0", "linux_amd64", first); err != nil {
			return err
		}
		for page := range pagesEach {
			name := strings.TrimPrefix(pageName(i, page), "cloud_")
			if _, err := writeFile(filepath.Join(dir, "docs", "resources", name+".md"), text([]byte("---\npage_title: \"cloud_"+name+" Resource - terraform-provider-cloud\"\n---\n"))); err != nil {
				return err
			}
		}
	}
	return nil
}
