"""The commands, one a file: options in, exit code out. None prints or exits; `diagnoser.cli` lists them."""
