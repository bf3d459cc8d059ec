"""Files as such: what is opened, unpacked, kept for a later run, and put aside while it is made."""
