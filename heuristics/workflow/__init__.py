"""The published workflow rule by rule: does a run fit, is it cut well, are the needs of its
features met.
"""
