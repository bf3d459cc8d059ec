"""Which configurations are refused, and by whom: our rules by version, and a configuration after a
change.
"""
