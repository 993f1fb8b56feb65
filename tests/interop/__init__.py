"""Other projects' clients, and a browser, against a served example over real sockets."""
