"""Many ranks of one run: each gives a small summary, and from these alone comes who makes whom
wait.
"""
