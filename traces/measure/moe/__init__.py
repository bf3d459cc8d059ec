"""The MoE ledger: which kernel belongs to which module, pass and layer, and what each of them
takes.
"""
