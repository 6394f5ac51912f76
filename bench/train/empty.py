# SPDX-License-Identifier: Apache-2.0
"""Cost of torch.empty and cupy.empty, created and dropped: their own allocators and Isthmus' pool.

Each runs in a separate process; the result is the lowest of seven rounds. Arguments: sizes in
bytes.
"""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, time
library, allocator, nbytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
if library == "torch":
    import torch
    if allocator == "isthmus":
        import isthmus.torch
        isthmus.torch.use()
    make = lambda: torch.empty(nbytes, dtype=torch.uint8, device="cuda")
else:
    import cupy
    if allocator == "isthmus":
        import isthmus.cupy
        isthmus.cupy.use()
    make = lambda: cupy.empty(nbytes, cupy.uint8)
def seconds(times):
    begin = time.perf_counter()
    for _ in range(times):
        make()
    return (time.perf_counter() - begin) / times
seconds(2000)
print(min(seconds(20_000) for _ in range(7)))
"""


def taken(*arguments: str) -> float | None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(f"{' '.join(arguments)}: {done.stderr.splitlines()[-1]}")
        return None
    return float(done.stdout)


def main() -> None:
    for library in ("torch", "cupy"):
        for nbytes in map(int, sys.argv[1:] or (1 << 10, 1 << 20, 8 << 20)):
            own = taken(library, "own", str(nbytes))
            ours = own and taken(library, "isthmus", str(nbytes))
            if own is None or ours is None:
                break
            print(
                f"{library}.empty of {nbytes:>8} bytes: its own {own * 1e9:6.0f} ns, "
                f"isthmus {ours * 1e9:6.0f} ns, x {ours / own:.2f}"
            )


if __name__ == "__main__":
    main()
