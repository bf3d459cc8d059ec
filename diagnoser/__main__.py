"""`python -m diagnoser`: the same as the command `moe-diag`."""

from diagnoser.cli import main

if __name__ == "__main__":
    main()
