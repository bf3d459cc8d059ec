"""Pages of one file: every block as HTML, styled and scripted from within, asking for nothing."""
