"""MemPro's loop over versions of the whole program: its tree, its nodes, its report."""
