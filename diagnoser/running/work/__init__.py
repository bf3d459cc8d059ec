"""One trace measured, and the same work on many at once: here, in processes, on a cluster."""
