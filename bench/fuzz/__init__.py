"""Inputs that nobody wrote: recordings and files spoiled one small step at a time, for each reader there is.

An input is made of a target's name, a seed and a number alone, so that any failure can be made again.
"""
