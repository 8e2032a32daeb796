"""recall: a question becomes evidence and an answer (AMA 3.2-3.3, MemMA retrieval). It never edits memory."""
