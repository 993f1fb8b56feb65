"""The official conformance suite against served examples."""
