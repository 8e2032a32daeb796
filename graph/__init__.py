"""The graphs: remember, recall, session, and memory, their parent."""
