"""The ways a request is served."""
