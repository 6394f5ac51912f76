# SPDX-License-Identifier: Apache-2.0
"""Trains a GPT of 355 M parameters with PyTorch's own allocator and with Isthmus in its place.

Each run is a separate process; the allocators alternate. The lengths of the sequences vary from
step to step, equally in every run, which fragments memory. For each allocator the program prints
the time of a step, the peak of what the allocator took from the driver (held), and the peak of what
tensors requested (live). It also prints two ratios of Isthmus: its time over PyTorch's best time,
and its held over its live memory. The first steps of a run do not count. Of several rounds the
lowest time of each step counts, because other work on the host can only add to it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

ALLOCATORS = {
    "default": "",
    "expandable": "expandable_segments:True",
    "async": "backend:cudaMallocAsync",
    "isthmus": "",
}
TIME_BOUND, HELD_BOUND = 1.01, 1.02
WARM_UP = 10  # steps
VOCABULARY, LAYERS, WIDTH, HEADS, LONGEST = 50257, 24, 1024, 16, 1024


def make_model(torch: Any) -> Any:
    """Returns a decoder like GPT-2 medium, in plain PyTorch."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.before_attention = nn.LayerNorm(WIDTH)
            self.attention_in = nn.Linear(WIDTH, 3 * WIDTH)
            self.attention_out = nn.Linear(WIDTH, WIDTH)
            self.before_layers = nn.LayerNorm(WIDTH)
            self.up = nn.Linear(WIDTH, 4 * WIDTH)
            self.down = nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            mixed = self.attention_in(self.before_attention(x))
            mixed = mixed.view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(*mixed, is_causal=True)
            x = x + self.attention_out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
            return x + self.down(functional.gelu(self.up(self.before_layers(x))))

    class GPT(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.places = nn.Embedding(LONGEST, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.last = nn.LayerNorm(WIDTH)
            nn.init.normal_(self.tokens.weight, std=0.02)

        def forward(self, tokens: Any) -> Any:
            places = torch.arange(tokens.shape[1], device=tokens.device)
            x = self.tokens(tokens) + self.places(places)
            for block in self.blocks:
                x = block(x)
            return functional.linear(self.last(x), self.tokens.weight)

    return GPT()


def train(name: str, steps: int, batch: int) -> dict[str, Any]:
    """Trains once in this process; returns the measurements."""
    import torch

    if name == "isthmus":
        import isthmus.torch

        isthmus.torch.use()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    with torch.device("cuda"):
        model = make_model(torch)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    chosen = torch.Generator().manual_seed(1)
    losses, ends = [], [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    ends[0].record()
    for step in range(steps):
        length = int(torch.randint(LONGEST // 4, LONGEST + 1, (), generator=chosen))
        # Created on the device: with a copy from plain memory the host would wait for the device,
        # and then the device for the host.
        tokens = torch.randint(VOCABULARY, (batch, length + 1), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            scores = model(tokens[:, :-1])
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        ends[step + 1].record()
    torch.cuda.synchronize()
    return {
        "allocator": name,
        "parameters": sum(each.numel() for each in model.parameters()),
        "ms": [begin.elapsed_time(end) for begin, end in pairwise(ends)],
        "loss": float(losses[-1]),
        **peaks(torch, name),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }


def peaks(torch: Any, name: str) -> dict[str, int]:
    if name == "isthmus":
        import isthmus.torch

        told = isthmus.torch.stats()
        return {
            "held": told.peak_held_bytes or 0,
            "live": told.peak_live_bytes,
            "allocations": told.total_count,
        }
    stats = torch.cuda.memory_stats()
    live = stats.get("requested_bytes.all.peak") or stats["allocated_bytes.all.peak"]
    return {
        "held": stats["reserved_bytes.all.peak"],
        "live": live,
        "allocations": stats.get("allocation.all.allocated", 0),
    }


def run_apart(name: str, steps: int, batch: int) -> dict[str, Any]:
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": ALLOCATORS[name]}
    if not ALLOCATORS[name]:
        del environment["PYTORCH_CUDA_ALLOC_CONF"]
    done = subprocess.run(
        [sys.executable, __file__, "--run", name, "--steps", str(steps), "--batch", str(batch)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{name} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def compare(runs: list[dict[str, Any]]) -> dict[str, Any]:
    rows = {}
    warm = min(WARM_UP, len(runs[0]["ms"]) // 4)
    for name in dict.fromkeys(run["allocator"] for run in runs):
        its = [run for run in runs if run["allocator"] == name]
        rows[name] = {
            "ms_per_step": mean(map(min, zip(*(run["ms"][warm:] for run in its), strict=True))),
            "held": max(run["held"] for run in its),
            "live": max(run["live"] for run in its),
        }
    told: dict[str, Any] = {"rows": rows, "runs": runs}
    others = [row["ms_per_step"] for name, row in rows.items() if name != "isthmus"]
    if "isthmus" in rows and others:
        ours = rows["isthmus"]
        told["time_ratio"] = ours["ms_per_step"] / min(others)
        told["held_ratio"] = ours["held"] / ours["live"]
    return told


def show(told: dict[str, Any]) -> None:
    first = told["runs"][0]
    print(f"{first['device']}, PyTorch {first['torch']}, {first['parameters']:,} parameters")
    print(f"{'':12}{'ms a step':>12}{'held GiB':>12}{'live GiB':>12}{'held/live':>12}")
    for name, row in told["rows"].items():
        held, live = row["held"] / 2**30, row["live"] / 2**30
        print(f"{name:12}{row['ms_per_step']:12.2f}{held:12.3f}{live:12.3f}{held / live:12.4f}")
    if "time_ratio" in told:
        print(f"time over PyTorch's best: {told['time_ratio']:.4f} (bound {TIME_BOUND})")
        print(f"held over live: {told['held_ratio']:.4f} (bound {HELD_BOUND})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=1, help="runs of each, by turns")
    parser.add_argument("--allocators", default="default,expandable,isthmus")
    parser.add_argument("--json", type=Path, help="writes all figures there")
    parser.add_argument("--check", action="store_true", help="status 1 if a bound was not held")
    parser.add_argument("--run", choices=ALLOCATORS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.run:
        print(json.dumps(train(chosen.run, chosen.steps, chosen.batch)))
        return 0
    names = chosen.allocators.split(",")
    runs = []
    for _ in range(chosen.rounds):
        for name in names:
            runs.append(run_apart(name, chosen.steps, chosen.batch))
            told = {**runs[-1], "ms": round(mean(runs[-1]["ms"]), 2)}
            print(json.dumps(told), file=sys.stderr, flush=True)
    told = compare(runs)
    show(told)
    if chosen.json:
        chosen.json.write_text(json.dumps(told, indent=1))
    held = told.get("time_ratio", 0) <= TIME_BOUND and told.get("held_ratio", 0) <= HELD_BOUND
    return 1 if chosen.check and not held else 0


if __name__ == "__main__":
    sys.exit(main())
