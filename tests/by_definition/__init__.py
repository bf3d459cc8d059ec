"""Second implementations, from the definitions or by plain SQL and loops: nothing of the program is used."""
