"""Reads a pickle of builtin containers and scalars, and nothing else.

The standard unpickler, even one that admits no class, can be made to fill memory with the slots of
a memo that its input only names, to hash what is nested too deep for the stack, and to hand out
what a program registered as an extension. This one has no operation that names, calls or builds an
object, and what it makes is in proportion to what it reads.
"""

from __future__ import annotations

import pickletools
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["loads"]

_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})


def loads(data: bytes) -> Any:
    """The object of the pickle that ``data`` begins with, of any protocol.

    Keys and members of sets are scalars, or tuples of them. Raises ValueError, with the place and
    the opcode, for all else that a pickle may hold; for what is no pickle any Exception.
    """
    return _Reader(data).load()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []  # lengths of the stack
        self.memo: dict[int, Any] = {}

    def load(self) -> Any:
        """The commonest operations are here, since a snapshot has millions of them."""
        data, stack, memo, at = self.data, self.stack, self.memo, 0
        push, end = stack.append, len(data)
        while at < end:
            opcode = data[at]
            at += 1
            if opcode == 0x68:  # BINGET
                push(memo[data[at]])
                at += 1
            elif opcode == 0x94:  # MEMOIZE
                memo[len(memo)] = stack[-1]
            elif opcode == 0x6A:  # LONG_BINGET
                push(memo[int.from_bytes(data[at : at + 4], "little")])
                at += 4
            elif opcode == 0x4B:  # BININT1
                push(data[at])
                at += 1
            elif opcode == 0x28:  # MARK
                self.marks.append(len(stack))
            elif opcode == 0x7D:  # EMPTY_DICT
                push({})
            elif opcode == 0x75:  # SETITEMS
                self.at = at
                self.set_items(self.pop_mark())
            elif opcode == 0x2E:  # STOP
                return stack.pop()
            else:
                self.at = at
                operation = _OPERATIONS.get(opcode)
                if operation is None:
                    raise ValueError(f"byte {at - 1}: {_refused(opcode)}")
                operation(self)
                at = self.at
        raise ValueError(f"byte {end}: the file ends before the pickle does")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop_mark(self) -> list[Any]:
        """What lies above the last mark."""
        begin = self.marks.pop()
        above = self.stack[begin:]
        del self.stack[begin:]
        return above

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise ValueError(f"byte {self.at}: {count} bytes should follow, the file ends before")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def number(self, nbytes: int) -> int:
        return int.from_bytes(self.take(nbytes), "little")

    def line(self) -> bytes:
        end = self.data.index(b"\n", self.at)
        taken = self.data[self.at : end]
        self.at = end + 1
        return taken

    def put(self, slot: int) -> None:
        self.memo[slot] = self.stack[-1]

    def extend(self, values: list[Any]) -> None:
        self._top(list).extend(values)

    def set_items(self, flat: list[Any]) -> None:
        self._top(dict).update(_pairs(flat))

    def add(self, values: list[Any]) -> None:
        self._top(set).update(_keys(values))

    def push_tuple(self, count: int) -> None:
        self.stack[-count:] = [tuple(self.stack[-count:])]

    def _top(self, kind: type) -> Any:
        top = self.stack[-1]
        if type(top) is not kind:
            raise ValueError(
                f"byte {self.at - 1}: {type(top).__name__} where a {kind.__name__} should be"
            )
        return top


def _refused(opcode: int) -> str:
    names = {each.code: each.name for each in pickletools.opcodes}
    name = names.get(chr(opcode), f"opcode 0x{opcode:02x}")
    return f"{name}: only builtin containers and scalars are read, no name and no call"


def _check_keys(keys: Iterable[Any]) -> None:
    """Hashing them goes no deeper than a tuple of scalars."""
    for key in keys:
        if type(key) not in _SCALARS and not (
            type(key) is tuple and _SCALARS.issuperset(map(type, key))
        ):
            raise ValueError(f"a {type(key).__name__} as a key, or in one")


def _keys(values: list[Any]) -> list[Any]:
    _check_keys(values)
    return values


def _pairs(flat: list[Any]) -> Iterable[tuple[Any, Any]]:
    keys = flat[::2]
    _check_keys(keys)
    return zip(keys, flat[1::2], strict=True)


def _integer(line: bytes) -> int:
    """As protocol 0 writes it, which has booleans among them."""
    return line == b"01" if line in (b"00", b"01") else int(line.removesuffix(b"L"))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


def _sized(count: int, decode: Callable[[bytes], Any]) -> Callable[[_Reader], None]:
    """What is preceded by its length, in so many bytes."""
    return lambda reader: reader.push(decode(reader.take(reader.number(count))))


_OPERATIONS: dict[int, Callable[[_Reader], object]] = {
    ord(code): operation
    for code, operation in {
        "g": lambda reader: reader.push(reader.memo[int(reader.line())]),
        "p": lambda reader: reader.put(int(reader.line())),
        "q": lambda reader: reader.put(reader.number(1)),
        "r": lambda reader: reader.put(reader.number(4)),
        "M": lambda reader: reader.push(reader.number(2)),
        "J": lambda reader: reader.push(_signed(reader.take(4))),
        "I": lambda reader: reader.push(_integer(reader.line())),
        "L": lambda reader: reader.push(_integer(reader.line())),
        "\x8a": _sized(1, _signed),
        "\x8b": _sized(4, _signed),
        "G": lambda reader: reader.push(struct.unpack(">d", reader.take(8))[0]),
        "F": lambda reader: reader.push(float(reader.line())),
        "N": lambda reader: reader.push(None),
        "\x88": lambda reader: reader.push(True),
        "\x89": lambda reader: reader.push(False),
        "\x8c": _sized(1, _text),
        "X": _sized(4, _text),
        "\x8d": _sized(8, _text),
        "V": lambda reader: reader.push(reader.line().decode("raw-unicode-escape")),
        "C": _sized(1, bytes),
        "B": _sized(4, bytes),
        "\x8e": _sized(8, bytes),
        "\x96": _sized(8, bytearray),
        "0": lambda reader: reader.stack.pop(),
        "1": lambda reader: reader.pop_mark(),
        "]": lambda reader: reader.push([]),
        ")": lambda reader: reader.push(()),
        "\x8f": lambda reader: reader.push(set()),
        "a": lambda reader: reader.extend([reader.stack.pop()]),
        "e": lambda reader: reader.extend(reader.pop_mark()),
        "s": lambda reader: reader.set_items([reader.stack.pop(), reader.stack.pop()][::-1]),
        "\x90": lambda reader: reader.add(reader.pop_mark()),
        "l": lambda reader: reader.push(reader.pop_mark()),
        "d": lambda reader: reader.push(dict(_pairs(reader.pop_mark()))),
        "t": lambda reader: reader.push(tuple(reader.pop_mark())),
        "\x91": lambda reader: reader.push(frozenset(_keys(reader.pop_mark()))),
        "\x85": lambda reader: reader.push_tuple(1),
        "\x86": lambda reader: reader.push_tuple(2),
        "\x87": lambda reader: reader.push_tuple(3),
        "\x80": lambda reader: reader.take(1),  # the protocol
        "\x95": lambda reader: reader.take(8),  # the length of a frame
    }.items()
}
