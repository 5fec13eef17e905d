"""The cost of a large registry of opt-outs: CPU time to read it, memory, and time of a look-up.

python benchmarks/opt_outs.py 10000000       the number of entries
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from rounds import peak

from comity.policies.registry import LINES, OptOuts, read_registry

LOOK_UPS = 20_000


def _lines(entries: int) -> Iterator[bytes]:
    return (b"site-%d.example.com\n" % number for number in range(entries))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("entries", type=int, nargs="?", default=1_000_000)
    entries = parser.parse_args().entries
    before, began = peak(), time.process_time()
    registry = read_registry("list.txt", LINES, _lines(entries), lambda domain: False)
    seconds = time.process_time() - began
    print(f"{registry.entries:,} entries: {seconds:.1f} s, {(peak() - before) / 1024:.0f} MiB")
    opt_outs, began = OptOuts([registry]), time.process_time()
    found = sum(
        bool(opt_outs.of_site(f"https://www.site-{2 * number}.example.com"))
        for number in range(LOOK_UPS)
    )
    seconds = (time.process_time() - began) / LOOK_UPS
    print(f"{found:,} of {LOOK_UPS:,} hosts found: {seconds * 1e6:.1f} us each")


if __name__ == "__main__":
    main()
