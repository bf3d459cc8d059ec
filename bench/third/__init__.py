"""A third simulator of coupled ranks: streams, NICs and clocks of a cluster, by a model of its own.

It follows a model that another author described in words, and shares no code with what that author wrote.
"""
