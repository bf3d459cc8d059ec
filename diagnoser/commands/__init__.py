"""The commands, by what they take: options in, exit code out.

None prints or exits; `diagnoser.cli` lists them.
"""
