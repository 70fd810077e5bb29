"""Readings of tenants, as the engine makes them of the samples of recordings, in steps of a second.

    python extract.py NAME=RECORDING ... | gzip -9n > laboratory.csv.gz

needs `zstd`. A line is a tenant's step: bytes read and written in it, and, where its processes were looked at, what they used. Steps in
which a tenant that was there did nothing and was not looked at have no line, but for its last; times and sizes are as recorded.
"""

import csv
import json
import subprocess
import sys

STEP_NS = 1_000_000_000
# As `core/observe`: a pair that is new holds no more than its disk moved in this slice, read a little earlier or later.
SKEW_BYTES = 1 << 20
COLUMNS = ["recording", "tenant", "step", "seconds", "read_bytes", "written_bytes", "cpus", "memory_bytes"]
COLUMNS += ["network_bytes_per_second", "open_files", "open_sockets", "open_file_bytes"]


def events(path):
    lines = subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=True).stdout
    header, rest = lines.split(b"\n", 1)
    rest = rest[json.loads(header)["snapshot_bytes"] :]
    for line in rest.splitlines():
        entry = json.loads(line) if line.strip() else {}
        if "event" in entry:
            yield entry["event"]["at"], entry["event"]["what"]


def moved(old, new):
    """What was read and written between two counts; nothing where they began again."""
    if any(new[key] < old[key] for key in new):
        return None
    return [new[key] - old[key] for key in ("read_bytes", "write_bytes")]


class Recording:
    def __init__(self):
        self.counters, self.disks, self.looks = {}, {}, {}
        self.last_ns, self.elapsed_ns, self.step = None, 0, 0
        self.under_way, self.rows, self.last_step = {}, [], {}

    def sampled(self, at, sample):
        elapsed_ns = at - self.last_ns if self.last_ns is not None else 0
        self.last_ns = at
        disks = {json.dumps(row["device"]): row["counters"] for row in sample["devices"]}
        disk_moved = {}
        for disk, counters in disks.items():
            disk_moved[disk] = sum(moved(self.disks[disk], counters) or [0]) if disk in self.disks else None
        self.disks = disks
        used = {row["tenant"]: usage for row in sample["usage"] if (usage := self.look(at, row))}
        present = set()
        for row in sample["io"]:
            disk = json.dumps(row["device"])
            key, new = (row["tenant"], disk), row["counters"]
            old = self.counters.get(key)
            self.counters[key] = new
            if old is not None:
                both = moved(old, new)
            else:
                both = [new["read_bytes"], new["write_bytes"]]
                most = disk_moved.get(disk)
                both = both if most is not None and sum(both) <= most * 1.5 + SKEW_BYTES else None
            if both is not None and elapsed_ns > 0:
                present.add(row["tenant"])
                self.add(row["tenant"], both, used.get(row["tenant"]))
        for tenant, usage in used.items():
            if tenant not in present and tenant in self.last_step:
                self.add(tenant, [0, 0], usage)
        self.elapsed_ns += elapsed_ns
        # The timer is not exact to the nanosecond.
        if self.elapsed_ns >= STEP_NS * 0.95:
            self.end_step()

    def look(self, at, row):
        before = self.looks.get(row["tenant"])
        self.looks[row["tenant"]] = (at, row["cpu_ns"], row["network_bytes"] or 0)
        rates = [0.0, 0.0]
        if before is not None and at > before[0]:
            seconds = (at - before[0]) / 1e9
            rates = [(row["cpu_ns"] - before[1]) / 1e9 / seconds, ((row["network_bytes"] or 0) - before[2]) / seconds]
        cpus, network = (max(rate, 0.0) for rate in rates)
        return [f"{cpus:.3f}", row["memory_bytes"], f"{network:.0f}", row["open_files"], row["open_sockets"], row["open_file_bytes"]]

    def add(self, tenant, both, usage):
        kept = self.under_way.setdefault(tenant, [0, 0, None])
        kept[0] += both[0]
        kept[1] += both[1]
        kept[2] = usage or kept[2]

    def end_step(self):
        for tenant, (read, written, usage) in sorted(self.under_way.items()):
            if tenant not in self.last_step and read + written == 0:
                continue
            self.last_step[tenant] = self.step
            self.rows.append((tenant, self.step, self.elapsed_ns / 1e9, read, written, usage))
        self.under_way, self.elapsed_ns, self.step = {}, 0, self.step + 1


def main():
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(COLUMNS)
    for argument in sys.argv[1:]:
        name, path = argument.split("=", 1)
        recording = Recording()
        for at, what in events(path):
            if isinstance(what, dict) and "sampled" in what:
                recording.sampled(at, what["sampled"])
        numbers = {}
        for tenant, step, seconds, read, written, usage in recording.rows:
            if read + written == 0 and usage is None and step != recording.last_step[tenant]:
                continue
            number = numbers.setdefault(tenant, len(numbers))
            out.writerow([name, number, step, f"{seconds:.3f}", read, written] + (usage or [""] * 6))


main()
