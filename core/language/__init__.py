"""Language without a model: tokens, dates, names, sentences, questions."""
