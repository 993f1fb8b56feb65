"""What happens when processes, connections and stores fail."""
