"""Why no compute ran: every instant without compute on a GPU gets one reason, adding up to the
integer.

The kernel X that ends an interval is asked: had it been launched, and if so, what did it wait for?
docs/method.md, "Why no compute ran", gives the rules; `account` applies them in their order.
"""
