"""A language server: the help of formats for their authors, in the editors that these have (LSP 3.17).

documents     a text, its lines, and positions in it as an editor counts them
statements    what stands in a document: names and values with their spans, in lines, XML, JSON and HTML
words         which words the formats have there
samples       paths, elements and URLs of the site that the files are for, from the folder in which they are
server        the protocol; every feature has a module of its own, of functions of a document
What it can do, and how editors are set up, stands in docs/language-server.md."""
