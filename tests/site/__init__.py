"""The documentation as a site: pages of the repository, and pages of what `explain` and the schemas hold."""
