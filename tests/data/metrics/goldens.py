"""Makes goldens.json: what Python's own reader says of each page in this folder.

    python3 -m venv /tmp/goldens && /tmp/goldens/bin/pip install prometheus_client==0.26.0
    /tmp/goldens/bin/python tests/data/metrics/goldens.py

A page that the reader accepts gets its number of samples, a hash over them, and its timestamps. For any other page each line is tried
alone, and the numbers of the lines that are refused are listed.

Two traps. The text reader renames counters (`foo` becomes `foo_total`) and the OpenMetrics reader leaves out
repeated samples, both after a line was read; so samples are noted where a line is read, as they stand on the page.
"""
import hashlib
import json
import pathlib
import struct

from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as om_parser

HERE = pathlib.Path(__file__).parent


def noting(module):
    """All samples of a page as this module's line reader gives them, or an error."""

    def read(page):
        seen, line_reader = [], module._parse_sample

        def note(line):
            sample = line_reader(line)
            seen.append(sample)
            return sample

        module._parse_sample = note
        try:
            for _ in module.text_string_to_metric_families(page):
                pass
        finally:
            module._parse_sample = line_reader
        return seen

    return read


READERS = {"text": noting(text_parser), "openmetrics": noting(om_parser)}


def bits(value):
    value = float(value)
    if value != value:
        return "nan"
    return struct.pack(">d", value).hex()


def line(sample):
    parts = [sample.name]
    for name, value in sorted(sample.labels.items(), key=lambda label: label[0].encode()):
        parts += [name, value]
    return "\x1f".join(parts + [bits(sample.value)]).encode()


def digest(samples):
    return hashlib.sha256(b"\x1e".join(sorted(map(line, samples)))).hexdigest()


def stamps(accepted, page):
    """The timestamps of a page in Unix milliseconds; none where the text reader takes exemplars for timestamps."""
    if "openmetrics" not in accepted and " # {" in page:
        return {}
    samples = accepted.get("openmetrics", accepted.get("text"))
    return {"timestamps_ms": [round(float(s.timestamp) * 1000) for s in samples if s.timestamp is not None]}


def refused_lines(page):
    """Numbers of the lines that the text reader refuses when they stand alone."""
    refused = []
    for number, text in enumerate(page.split("\n"), 1):
        try:
            READERS["text"](text)
        except Exception:
            refused.append(number)
    return refused


def golden(page):
    out, accepted = {}, {}
    for name, reader in READERS.items():
        try:
            accepted[name] = reader(page)
        except Exception as error:
            out.setdefault("refused_by", {})[name] = f"{type(error).__name__}: {error}"[:100]
    if not accepted:
        refused = refused_lines(page)
        return out | {"unread": len(refused), "unread_lines": refused}
    hashes = {name: (len(samples), digest(samples)) for name, samples in accepted.items()}
    assert len(set(hashes.values())) == 1, hashes
    samples, sha256 = next(iter(hashes.values()))
    return {"accepted_by": sorted(accepted), "samples": samples, "sha256": sha256} | stamps(accepted, page) | out


def main():
    goldens = {}
    for path in sorted(HERE.rglob("*.txt")):
        page = path.read_bytes().decode(errors="replace")
        goldens[path.relative_to(HERE).as_posix()] = golden(page)
    (HERE / "goldens.json").write_text(json.dumps(goldens, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
