"""What differs between two results, in integers that add up; what to make of it is judged beside
it.
"""
