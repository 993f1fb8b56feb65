"""Helpers of the tests: real parts to install and start, and the rules that every test keeps."""
