// Package pages renders the pages of the registry for a browser: the home page, lists and
// search, and a page for each module and provider. Agents get the same pages as Markdown and
// llms.txt, and readers get feeds. All of these show only what the handlers let a request see,
// and fetch nothing from an origin.
//
// How a page is made:
//
//   - A template in templates/ without a leading underscore is a page. It defines
//     "content", and is shown in the frame of _layout.html. All pages can use the parts in
//     the other files with an underscore.
//   - Each page has a model (page.go, modulemodel.go, providermodel.go, or beside the
//     function that fills it): an unexported struct named after the page. It embeds page, the
//     model of the frame, and on a page about a module or provider also heading and sidebar.
//     Models are plain values. A function fills a model from the index, and the template only
//     arranges it. Text in a model is as its author wrote it, and html/template escapes it.
//     Only sanitised text has the type template.HTML.
//   - render executes a page's template with its model.
//   - A page as Markdown is made from its HTML (markdownform.go), so that each page has both
//     forms. An element that is of use in a browser alone is left out there.
//   - A feed has no page. It is made of events (feeds.go), which package feed writes.
//
// How a request is answered:
//
//   - Site.ServeHTTP takes the paths that route.Parse knows, and no others. A route is a path
//     in its normal form. Other spellings are redirected to it. A query has the parameters
//     that the page depends on, and no others.
//   - A visit (visit.go) is a request with its route, its query and a View of what it may
//     see. It has a method for each kind of page, which looks up data, fills a model and
//     returns an answer. If a look-up fails, visit.failed makes a page of the error. Nothing
//     is written earlier, since a look-up may have to wait for the next snapshot.
//   - A page that is the same for everyone is kept by route and query, as long as its
//     snapshot is the latest (pagecache.go). The format is part of the query, although it may
//     come from the header. A page must not depend on anything else, such as the time.
//   - Links to pages are made from routes (visit.url), so that they are right below any
//     path. A page links only to pages that its visitor can see.
//
// The Content-Security-Policy allows no inline style or script, and templates have none.
// They use assets/style.css and assets/script.js, which are served under a name with a hash.
// The look is made of a few pieces, which are described at their models: chips, notices,
// facts, entries, snippets, .prose for text that others wrote, and .unfold for what is
// beside the content of a wide window and folded above it in a narrow one. Blocks that scroll
// sideways have a tabindex, so that a keyboard can scroll them.
package pages
