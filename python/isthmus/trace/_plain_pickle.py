# SPDX-License-Identifier: Apache-2.0
"""Reads pickles that contain only builtin containers and scalars.

The standard unpickler, even if it admits no class, can be made to fill memory with the slots of a
memo that its input only names, to hash objects nested too deep for the stack, and to return objects
that a program registered as an extension. This one has no operation that names, calls or builds an
object, and the size of its result is proportional to the input.

The time is proportional too. Each operation takes constant time, or consumes as many bytes or stack
items as it copies. A pickle can repeat a key in two bytes, so three rules keep dictionaries linear.
A key is short: comparing two equal ones takes time in proportion to their length. Only text and
bytes may be keys in any number: their hashes are keyed per process, while those of numbers and
tuples can be chosen so that each key is compared with all others. The memo is a list, not a
dictionary of numbers.
"""

from __future__ import annotations

import pickletools
import struct
from typing import TYPE_CHECKING, Any

from ._trace import fits_64_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["loads"]

_KEYED_HASH = frozenset({str, bytes})  # keyed per process and cached by the object
_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})
_MAX_KEY_LENGTH = 1 << 10  # characters or bytes of a key
_MAX_TUPLE_MEMBERS = 16  # of a tuple as a key
_MAX_OTHER_KEYS = 256  # keys of a dictionary, members of a set, that are neither text nor bytes
_MAX_DIGITS = 1 << 12  # of a number in decimal, which takes quadratic time


def loads(data: bytes) -> Any:
    """The object of the pickle that ``data`` begins with, of any protocol.

    Keys and members of sets are text and bytes of at most 1,024 elements; at most 256 in each may
    be other scalars, including integers of 64 bits, or tuples of at most 16 such. Memo entries are
    numbered from 0 in the order of their creation, as in all picklers. Raises ValueError, with
    position and opcode, for other contents of a pickle; any Exception if ``data`` is not a pickle.
    Takes time and memory in proportion to the length of ``data``.
    """
    return _Reader(data).load()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []  # lengths of the stack
        self.memo: list[Any] = []
        self.checked_tuples: dict[int, Any] = {}  # by id: tuples that were accepted as keys

    def load(self) -> Any:
        """The most frequent operations are inlined here, since a snapshot has millions of them."""
        data, stack, memo, position = self.data, self.stack, self.memo, 0
        push, end = stack.append, len(data)
        while position < end:
            opcode = data[position]
            position += 1
            if opcode == 0x68:  # BINGET
                push(memo[data[position]])
                position += 1
            elif opcode == 0x94:  # MEMOIZE
                memo.append(stack[-1])
            elif opcode == 0x6A:  # LONG_BINGET
                push(memo[int.from_bytes(data[position : position + 4], "little")])
                position += 4
            elif opcode == 0x4B:  # BININT1
                push(data[position])
                position += 1
            elif opcode == 0x28:  # MARK
                self.marks.append(len(stack))
            elif opcode == 0x7D:  # EMPTY_DICT
                push({})
            elif opcode == 0x75:  # SETITEMS
                self.position = position
                self.set_items(self.pop_mark())
            elif opcode == 0x2E:  # STOP
                return stack.pop()
            else:
                self.position = position
                operation = _OPERATIONS.get(opcode)
                if operation is None:
                    raise ValueError(f"byte {position - 1}: {_refused(opcode)}")
                operation(self)
                position = self.position
        raise ValueError(f"byte {end}: the file ends before the pickle does")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop_mark(self) -> list[Any]:
        """The items above the last mark."""
        begin = self.marks.pop()
        items = self.stack[begin:]
        del self.stack[begin:]
        return items

    def take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self.data):
            raise ValueError(
                f"byte {self.position}: {count} bytes should follow, but the file ends"
            )
        data = self.data[self.position : end]
        self.position = end
        return data

    def number(self, nbytes: int) -> int:
        return int.from_bytes(self.take(nbytes), "little")

    def line(self) -> bytes:
        end = self.data.index(b"\n", self.position)
        data = self.data[self.position : end]
        self.position = end + 1
        return data

    def decimal(self) -> int:
        """A memo index in the format of protocol 0."""
        return int(_short(self.line()))

    def put(self, index: int) -> None:
        if index == len(self.memo):
            self.memo.append(self.stack[-1])
        elif 0 <= index < len(self.memo):
            self.memo[index] = self.stack[-1]
        else:
            raise ValueError(
                f"byte {self.position - 1}: a memo entry is beyond the next free one, "
                f"{len(self.memo)}"
            )

    def get(self, index: int) -> None:
        if index < 0:
            raise ValueError(f"byte {self.position - 1}: a memo entry is below 0")
        self.push(self.memo[index])

    def extend(self, values: list[Any]) -> None:
        self._top(list).extend(values)

    def set_items(self, flat: list[Any]) -> None:
        top, keys = self._top(dict), flat[::2]
        self.check_keys(keys, top)
        top.update(zip(keys, flat[1::2], strict=True))

    def add(self, values: list[Any]) -> None:
        top = self._top(set)
        self.check_keys(values, top)
        top.update(values)

    def push_dict(self, flat: list[Any]) -> None:
        self.push({})
        self.set_items(flat)

    def push_frozenset(self, values: list[Any]) -> None:
        self.check_keys(values, ())
        self.push(frozenset(values))

    def check_keys(self, keys: list[Any], present: Collection[Any]) -> None:
        """Checks keys before they are hashed, for a container that has those ``present`` already.

        Repeated keys count each time, and so do all those present: a container may be rejected
        although it would finally have fewer keys.
        """
        other_keys = 0
        for key in keys:
            if type(key) not in _KEYED_HASH or len(key) > _MAX_KEY_LENGTH:
                self._check_other_key(key)
                other_keys += 1
        if other_keys and other_keys + len(present) > _MAX_OTHER_KEYS:
            raise ValueError(
                f"byte {self.position - 1}: more than {_MAX_OTHER_KEYS} keys, some neither text "
                "nor bytes"
            )

    def _check_other_key(self, key: Any) -> None:
        if type(key) is not tuple:
            _check_scalar(key)
        elif self.checked_tuples.get(id(key)) is not key:  # once for all uses of a memo entry
            if len(key) > _MAX_TUPLE_MEMBERS:
                raise ValueError(f"a key is a tuple of more than {_MAX_TUPLE_MEMBERS} members")
            for member in key:
                _check_scalar(member)
            self.checked_tuples[id(key)] = key

    def push_tuple(self, count: int) -> None:
        self.stack[-count:] = [tuple(self.stack[-count:])]

    def _top(self, kind: type) -> Any:
        top = self.stack[-1]
        if type(top) is not kind:
            raise ValueError(
                f"byte {self.position - 1}: found a {type(top).__name__}, expected a "
                f"{kind.__name__}"
            )
        return top


def _refused(opcode: int) -> str:
    names = {each.code: each.name for each in pickletools.opcodes}
    name = names.get(chr(opcode), f"opcode 0x{opcode:02x}")
    return f"{name}: only builtin containers and scalars are read, no names and no calls"


def _check_scalar(key: Any) -> None:
    """Ensures that hashing the key, and comparing it with an equal key, takes constant time."""
    if type(key) not in _SCALARS:
        raise ValueError(f"a key is, or contains, a {type(key).__name__}, which is not read")
    if type(key) in _KEYED_HASH and len(key) > _MAX_KEY_LENGTH:
        raise ValueError(f"a key has {len(key)} characters, at most {_MAX_KEY_LENGTH} are read")
    if type(key) is int and not fits_64_bits(key):
        raise ValueError(f"a key is an integer of {key.bit_length()} bits, at most 64 are read")


def _short(line: bytes) -> bytes:
    """A number of bounded length."""
    if len(line) > _MAX_DIGITS:
        raise ValueError(f"a number has {len(line)} digits, at most {_MAX_DIGITS} are read")
    return line


def _integer(line: bytes) -> int:
    """An integer or boolean in the format of protocol 0."""
    return line == b"01" if line in (b"00", b"01") else int(_short(line).removesuffix(b"L"))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


def _sized(count: int, decode: Callable[[bytes], Any]) -> Callable[[_Reader], None]:
    """A reader of a value that is preceded by its length in ``count`` bytes."""
    return lambda reader: reader.push(decode(reader.take(reader.number(count))))


_OPERATIONS: dict[int, Callable[[_Reader], object]] = {
    ord(code): operation
    for code, operation in {
        "g": lambda reader: reader.get(reader.decimal()),
        "p": lambda reader: reader.put(reader.decimal()),
        "q": lambda reader: reader.put(reader.number(1)),
        "r": lambda reader: reader.put(reader.number(4)),
        "M": lambda reader: reader.push(reader.number(2)),
        "J": lambda reader: reader.push(_signed(reader.take(4))),
        "I": lambda reader: reader.push(_integer(reader.line())),
        "L": lambda reader: reader.push(_integer(reader.line())),
        "\x8a": _sized(1, _signed),
        "\x8b": _sized(4, _signed),
        "G": lambda reader: reader.push(struct.unpack(">d", reader.take(8))[0]),
        "F": lambda reader: reader.push(float(_short(reader.line()))),
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
        "d": lambda reader: reader.push_dict(reader.pop_mark()),
        "t": lambda reader: reader.push(tuple(reader.pop_mark())),
        "\x91": lambda reader: reader.push_frozenset(reader.pop_mark()),
        "\x85": lambda reader: reader.push_tuple(1),
        "\x86": lambda reader: reader.push_tuple(2),
        "\x87": lambda reader: reader.push_tuple(3),
        "\x80": lambda reader: reader.take(1),  # the protocol
        "\x95": lambda reader: reader.take(8),  # the length of a frame
    }.items()
}
