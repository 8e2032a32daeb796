"""The half of the bank that keeps what is stored in order: duplicates, reinforcement, retention."""

from memcycle.stores.committing import Committing


class Maintaining(Committing):
    """Unites, reinforces, expires and takes back entries."""
