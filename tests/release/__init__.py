"""What a release promises, tried from outside: the README's commands and the oldest dependencies."""
