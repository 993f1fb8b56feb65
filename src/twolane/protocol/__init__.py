"""The protocol as pure functions: bytes, headers and time in, values out. Nothing here awaits or knows ASGI."""
