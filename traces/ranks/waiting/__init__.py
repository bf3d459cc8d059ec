"""Ranks side by side: who waited for whom, in which stages, for which experts, and with how many
bytes.
"""
