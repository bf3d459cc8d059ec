"""Parts of results, documents and pages made up for tests, with round numbers."""
