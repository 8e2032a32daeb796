"""Checks what a built wheel holds: prompts inside; no test, data set or cache."""

import sys
import zipfile
from pathlib import Path

names = zipfile.ZipFile(sys.argv[1]).namelist()
prompts = {path.name for path in Path("prompts").glob("*.txt")}
missing = prompts - {Path(name).name for name in names if name.startswith("memcycle/prompts/")}
stray = [
    name
    for name in names
    if "test" in name
    or "__pycache__" in name
    or "locomo10" in name
    or name.split("/")[0].split("-")[0] != "memcycle"
]
if missing or stray or not prompts:
    sys.exit(f"wheel is wrong: missing prompts {sorted(missing)}, stray files {stray}")
sys.stdout.write(f"wheel holds {len(names)} files, {len(prompts)} prompts among them\n")
