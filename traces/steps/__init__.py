"""Which stretches of a rank's time are training steps, and which of them are used.

One file per way of finding steps; `choose` tries them in order. The definitions are those of
docs/method.md, "How steps are found".
"""
