"""The figures that opinions are made from: of a trace, or of symptoms."""
