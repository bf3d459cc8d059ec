"""Documents that are kept as digests of their sections, so that no figure of any of them changes unseen."""
