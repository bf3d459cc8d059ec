"""How Sphinx writes the site. Everything a page asks for lies beside it; nothing is fetched."""

project = "moe-diag"
html_title = "moe-diag"
root_doc = "index"
extensions = ["myst_parser"]
myst_heading_anchors = 3  # links name headings as on GitHub
smartquotes = False  # two hyphens of a flag stay two hyphens
html_theme = "furo"  # fonts of the reader's machine, no address of another host
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_copy_source = False
html_use_index = False
highlight_language = "none"  # most blocks are commands and what they print
suppress_warnings = ["myst.header"]  # a ticket begins with a heading of the second level
