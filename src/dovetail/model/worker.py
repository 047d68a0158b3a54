"""A process that compiles programs for another one: ``python -m dovetail.model.worker``, started by ``workers``.

A message is a length (8 bytes, little endian) and so many bytes. In come a JSON object that says for what machine,
then programs as text, one at a time; out goes, for each, a line of JSON that says whether it went well, and the part's
bytes. The process ends when nothing more can come.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO

from dovetail.base.errors import DovetailError, TargetError
from dovetail.ir.parse import parse
from dovetail.model.parts import part_of, to_bytes
from dovetail.runtime.cache import Cache, open_cache
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

_LENGTH_BYTES = 8


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anybody prints goes elsewhere
    questions = sys.stdin.buffer
    asked = receive(questions)
    if asked is None:
        return
    setting = json.loads(asked)
    target = load_target(str(setting["target"]))
    store = open_cache() if setting["cache"] else None
    while (text := receive(questions)) is not None:
        send(answers, _answer(text.decode(), target, int(setting["threads"]), str(setting["digest"]), store))


def send(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(_LENGTH_BYTES, "little"))
    stream.write(message)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """The next message; None when the other side is gone."""
    head = stream.read(_LENGTH_BYTES)
    if len(head) < _LENGTH_BYTES:
        return None
    length = int.from_bytes(head, "little")
    message = stream.read(length)
    return message if len(message) == length else None


def _answer(text: str, target: Target, threads: int, digest: str, store: Cache | None) -> bytes:
    try:
        if target.digest != digest:
            raise TargetError(f"the target '{target.name}' has changed while programs were compiled for it")
        return b"{}\n" + to_bytes(part_of(parse(text), target, threads, store))
    except DovetailError as error:
        parts = [error.what, error.where, error.why, error.hint]
        return json.dumps({"error": type(error).__name__, "parts": parts}).encode() + b"\n"


if __name__ == "__main__":
    main()
