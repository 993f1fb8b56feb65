"""The tests of twolane: a mirror of ``src/twolane``, and beside it suites over real servers and clients."""
