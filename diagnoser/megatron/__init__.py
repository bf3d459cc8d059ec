"""The check of configurations against the real megatron-core, in a process of its own."""
