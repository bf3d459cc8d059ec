"""`python -m moe_diag`: the command, as `python -m diagnoser` is."""

from diagnoser.__main__ import main

if __name__ == "__main__":
    main()
