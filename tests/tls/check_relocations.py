# SPDX-License-Identifier: Apache-2.0
"""Looks how a library finds its thread-local storage.

check_relocations.py MODEL LIBRARY

MODEL is what ISTHMUS_TLS was: with `initial-exec` the offsets of what warm paths read are fixed
when the library is opened, with `descriptors` all is found by descriptors, which need no static
reserve.
Exits with 77 where there is no readelf.
"""

import re
import shutil
import subprocess
import sys

OFFSET = re.compile(r"R_X86_64_TPOFF64|R_AARCH64_TLS_TPREL")
DESCRIPTOR = re.compile(r"R_X86_64_TLSDESC|R_AARCH64_TLSDESC")
CALL = re.compile(r"R_X86_64_DTPMOD64|R_AARCH64_TLS_DTPMOD")


def main(model: str, library: str) -> str | None:
    """What is wrong; None: nothing."""
    listed = subprocess.run(
        ["readelf", "--relocs", "--wide", library], check=True, capture_output=True, text=True
    ).stdout
    wanted, unwanted = [OFFSET], []
    if model == "descriptors":
        wanted, unwanted = [DESCRIPTOR], [OFFSET, CALL]
    for each in wanted:
        if not each.search(listed):
            return f"{library} ({model}) lacks {each.pattern}:\n{listed}"
    for each in unwanted:
        if each.search(listed):
            return f"{library} ({model}) has {each.pattern}:\n{listed}"
    return None


if __name__ == "__main__":
    if shutil.which("readelf") is None:
        print("no readelf")
        sys.exit(77)
    sys.exit(main(*sys.argv[1:3]))
