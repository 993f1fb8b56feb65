"""What a factory returns: the server, its registry and the dispatch of one request."""
