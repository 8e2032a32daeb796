"""The command line: `memcycle`, or `python -m memcycle`."""

import gc
import sys


def main() -> None:
    """Runs the command line with the arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter shows a stand-in for it; it never ends the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    # Most of a short command is loading, and nothing that is loaded is garbage.
    if "ask" in sys.argv[1:2]:
        gc.disable()
    from memcycle.cli.app import app

    app()
