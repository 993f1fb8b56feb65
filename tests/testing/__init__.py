"""The client for users' tests."""
