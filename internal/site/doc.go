// Command site makes the documentation's site: every page of docs/, and what those pages link to,
// as HTML that opens from a folder, from a disk or below any path of a web server. scripts/site
// runs it.
//
// It fails on a link to a file or a heading that isn't there, on a page that the map
// (docs/README.md) doesn't list, and on HTML in a page. The site needs no network and no server:
// its search looks in an index that is made with the pages.
package main
