"""How clocks stand to each other: lines through what they show of one moment, and where such
moments are.
"""
