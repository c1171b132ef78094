// Package pages renders what people see of the registry in a browser: the home page,
// lists and search, a page for each module and provider. It shows what the handlers
// let a request see, and decides nothing of that itself.
//
// How a page comes about:
//
//   - A template in templates/ without a leading underscore is a page. It defines
//     "content", and is shown in the frame of _layout.html. The parts in the other
//     files with an underscore are there for all pages.
//   - Each page has a model (page.go, lists.go, modulemodel.go, providermodel.go), an
//     unexported struct named after it, which embeds page
//     (what the frame shows) and, where the page is about a module or provider,
//     heading and sidebar. Models are plain values: a function makes them of what the
//     index knows, and the template only arranges them. All text in them is as its
//     author wrote it, and is escaped by html/template; what is template.HTML has
//     been sanitised.
//   - render executes a page's template with its model.
//
// How a request is answered:
//
//   - Site.ServeHTTP takes the paths that parseRoute knows, and no other. A route is a
//     path in its normal form; other spellings are redirected to it. A query has what
//     the page depends on beside it, and nothing else.
//   - A visit is a request with its route, its query and the View of what it may see.
//     Its methods, one for each kind of page, look up what they need, fill a model and
//     return an answer. An error is that of a look-up: visit.failed makes a page of it.
//     Nothing is written before, as a look-up may have to wait for the next snapshot.
//   - What is the same for everyone is kept as long as its snapshot is the latest
//     (pageCache), by route and query. A page must not depend on anything else, such
//     as the time or a header.
//   - Links to pages are made from routes (visit.url), so that they are right below
//     any path. A page links only to what its visitor can see.
//
// The Content-Security-Policy allows no inline style or script, so that templates
// have neither: everything is in assets/style.css and assets/script.js, which are
// served under a name with a hash. The look is made of few pieces, described where
// their models are: chips, notices, facts, entries, snippets, and .prose for text
// that others wrote. Blocks that scroll sideways have a tabindex, so that they can be
// scrolled by keyboard.
package pages
