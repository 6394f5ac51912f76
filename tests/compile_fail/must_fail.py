# SPDX-License-Identifier: Apache-2.0
"""Passes if a file does not compile, and the compiler says what the file's first line expects.

must_fail.py FILE -- COMPILER ARGUMENTS...

The first line is `// expect: REGEX`. Anything else that keeps the file from compiling, a missing
header for one, fails the test: so a rule can not be kept by accident.
"""

import re
import subprocess
import sys
from pathlib import Path


def main() -> int:
    source = Path(sys.argv[1])
    command = sys.argv[sys.argv.index("--") + 1 :]
    first = source.read_text().splitlines()[0]
    expect = re.match(r"// expect: (.+)$", first)
    if not expect:
        print(f"{source}:1: the first line must be `// expect: REGEX`")
        return 1
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    if done.returncode == 0:
        print(f"{source}: compiles, and must not")
        return 1
    if re.search(expect[1], done.stderr) and "fatal error" not in done.stderr:
        return 0
    print(f"{source}: no diagnostic matches {expect[1]!r}\n{done.stderr}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
