"""What is measured, typed: each section of a result that facts alone fill, and that measures
return.
"""
