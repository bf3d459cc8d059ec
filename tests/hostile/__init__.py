"""What means harm or ends badly: names, shapes and calls, poisoned texts, secrets, a second user, kills."""
