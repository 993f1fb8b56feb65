"""Who is calling: auth info, principal and the ambient auth context."""
