"""The command line: `memcycle`, or `python -m memcycle`."""

import gc
import sys


def main() -> None:
    """Runs the command line with the arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter shows a stand-in for it; it never ends the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    # A question is over before there is garbage worth looking for among all that is loaded for it.
    if sys.argv[1:2] == ["ask"]:
        gc.disable()
    from memcycle.cli.app import app

    try:
        app()
    finally:
        gc.freeze()  # what ends with the process is not looked through first, for a third of a second
