"""What a new Megatron-Core or Megatron-Bridge has that our tables do not know, read from its text alone."""
