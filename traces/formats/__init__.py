"""File layouts, schema versions and SQL: only here. Every format ends in
`traces.columns.Columns`.
"""
