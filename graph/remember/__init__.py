"""remember: a chunk of turns becomes raw entries, facts and episodes (AMA 3.1-3.4, MemMA construction)."""
