"""What every word of a page means: walls, fixes, measures, rules, findings, failures, limits,
settings.
"""
