"""What `demo` shows: recordings of simulated runs with a known wall."""
