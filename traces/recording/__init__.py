"""How to record a run: the options of nsys and the flags of the frameworks, by the question
asked.
"""
