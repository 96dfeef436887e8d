"""A reader of packed libraries, written from the formats' description alone: ELF by struct, the blob by its records.
Everything that is not as described is an AssertionError.
"""
import ctypes
import struct

LIST, ARRAY = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def u64(self):
        value, = struct.unpack_from("<Q", self.data, self.at)
        self.at += 8
        return value

    def take(self, n):
        assert n <= len(self.data) - self.at, f"{n} bytes at {self.at} of {len(self.data)}"
        self.at += n
        return self.data[self.at - n:self.at]

    def string(self):
        return self.take(self.u64())

    def strings(self):
        return [self.string().decode() for _ in range(self.u64())]

    def numbers(self):
        return [self.u64() for _ in range(self.u64())]

    def array(self):
        """The bytes of one tensor's record."""
        start = self.at
        magic, reserved, device, number, ndim = struct.unpack_from("<QQiii", self.data, self.at)
        code, bits, lanes = struct.unpack_from("<BBH", self.data, self.at + 28)
        assert magic == ARRAY and reserved == 0 and (device, number) == (1, 0) and 0 <= ndim <= 32 and lanes == 1
        self.at += 32
        count = 1
        for n in struct.unpack(f"<{ndim}q", self.take(8 * ndim)):
            count *= n
        n = self.u64()
        assert n == (bits + 7) // 8 * count
        self.take(n)
        return self.data[start:self.at]


def factory(body):
    """(graph, {name: record}, name), and nothing behind."""
    graph, n = body.string().decode(), body.u64()
    names = body.strings()
    assert len(names) == n and len(set(names)) == n
    return graph, {name: body.array() for name in names}, body.string().decode()


def device(body):
    body.string()
    for _ in range(body.u64()):
        body.string()
        body.string()
        body.take(4 * body.u64())
        body.strings()
    body.string()


def modules(blob, others=None):
    """The modules in order as (kind, what factory gives, or the body's bytes), and their children by number. others: kind
    -> a function that passes over the body."""
    c = Cursor(blob)
    assert c.u64() == len(blob) - 8
    count, found, tree = c.u64(), [], None
    for _ in range(count):
        kind = c.string().decode()
        if kind == "_import_tree":
            assert tree is None
            tree = c.numbers(), c.numbers()
        elif kind == "_lib":
            found.append((kind, None))
        elif kind in ("GraphExecutorFactory", "GraphRuntimeFactory"):
            found.append((kind, factory(c)))
        else:
            start = c.at
            {"opencl": device, "cuda": device, **(others or {})}[kind](c)
            found.append((kind, blob[start:c.at]))
    assert c.at == len(blob) and tree is not None and count == len(found) + 1
    rows, children = tree
    assert len(rows) == len(found) + 1 and rows[0] == 0 and rows[-1] == len(children) and rows == sorted(rows)
    below = [children[a:b] for a, b in zip(rows, rows[1:])]
    assert [k for k, _ in found].count("_lib") == 1
    assert all(child > i for i, row in enumerate(below) for child in row), "a module stands before one that imports it"
    assert set(children) == set(range(1, len(found))), "all are below the root"
    return found, below


def gnu_hash(name):
    h = 5381
    for b in name.encode():
        h = (h * 33 + b) & 0xffffffff
    return h


def plain_hash(name):
    h = 0
    for b in name.encode():
        h = (h << 4) + b
        h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff
    return h


class Elf:
    """The file's headers, sections, segments and dynamic symbols, as the System V ABI lays them out."""

    def __init__(self, path):
        self.data = d = path.read_bytes()
        assert d[:6] == b"\x7fELF\x02\x01"
        self.type, = struct.unpack_from("<H", d, 16)
        phoff, shoff = struct.unpack_from("<QQ", d, 32)
        phnum, _, shnum, names = struct.unpack_from("<4H", d, 56)
        self.segments = [struct.unpack_from("<IIQQQQQQ", d, phoff + 56 * i) for i in range(phnum)]
        heads = [struct.unpack_from("<IIQQQQIIQQ", d, shoff + 64 * i) for i in range(shnum)]
        self.sections = {}
        for h in heads:
            at = heads[names][4] + h[0]
            self.sections[d[at:d.index(b"\0", at)].decode()] = h
        self.phoff, self.phnum, self.shoff = phoff, phnum, shoff
        assert shoff + 64 * shnum <= len(d)
        self.check_places(heads)
        table, text = self.bytes_of(".dynsym"), self.bytes_of(".dynstr")
        self.symbols = []
        for i in range(len(table) // 24):
            name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", table, 24 * i)
            self.symbols.append((text[name:text.index(b"\0", name)].decode(), info, section, value, size))

    def bytes_of(self, name):
        h = self.sections[name]
        return self.data[h[4]:h[4] + h[5]]

    def check_places(self, heads):
        """Nothing that has bytes overlaps another or the headers, and what is loaded lies in a segment, at its address."""
        loads = [s for s in self.segments if s[0] == 1]
        assert [s[3] for s in loads] == sorted(s[3] for s in loads)
        for _, _, offset, address, _, filesz, memsz, align in loads:
            assert offset % align == address % align and filesz <= memsz and offset + filesz <= len(self.data)
        for a, b in zip(loads, loads[1:]):
            assert a[3] + a[6] <= b[3]
        used = [(0, 64), (self.phoff, self.phoff + 56 * self.phnum)]
        for _, kind, flags, address, offset, size, *_ in heads:
            if kind in (0, 8) or size == 0:
                continue
            used.append((offset, offset + size))
            if flags & 2:
                assert any(s[2] <= offset and offset + size <= s[2] + s[5] and address - s[3] == offset - s[2] for s in loads)
        used.sort()
        assert all(a[1] <= b[0] for a, b in zip(used, used[1:])), used

    def dynamic(self):
        table = self.bytes_of(".dynamic")
        return dict(struct.unpack_from("<QQ", table, at) for at in range(0, len(table), 16))

    def look_up(self, name):
        """As a loader finds a symbol: by each hash table that there is. Numbers."""
        tags, found = self.dynamic(), []
        loads = [s for s in self.segments if s[0] == 1]

        def at(address):
            return next(s[2] + address - s[3] for s in loads if s[3] <= address < s[3] + s[5])
        if 0x6ffffef5 in tags:
            base = at(tags[0x6ffffef5])
            buckets, first, words, shift = struct.unpack_from("<4I", self.data, base)
            h = gnu_hash(name)
            word, = struct.unpack_from("<Q", self.data, base + 16 + 8 * (h // 64 % words))
            assert word >> h % 64 & 1 and word >> (h >> shift) % 64 & 1, "the filter has not the symbol"
            i, = struct.unpack_from("<I", self.data, base + 16 + 8 * words + 4 * (h % buckets))
            while True:
                one, = struct.unpack_from("<I", self.data, base + 16 + 8 * words + 4 * (buckets + i - first))
                if one | 1 == h | 1 and self.symbols[i][0] == name:
                    found.append(i)
                if one & 1:
                    break
                i += 1
        if 4 in tags:
            base = at(tags[4])
            buckets, chains = struct.unpack_from("<2I", self.data, base)
            assert chains == len(self.symbols)
            i, = struct.unpack_from("<I", self.data, base + 8 + 4 * (plain_hash(name) % buckets))
            while i != 0 and self.symbols[i][0] != name:
                i, = struct.unpack_from("<I", self.data, base + 8 + 4 * (buckets + i))
            assert i != 0
            found.append(i)
        assert at(tags[6]) == self.sections[".dynsym"][4] and at(tags[5]) == self.sections[".dynstr"][4]
        assert tags[10] == self.sections[".dynstr"][5] and found
        return found

    def blob(self, name="__tvm_dev_mblob"):
        """Every name is found by every table, and this one's bytes."""
        for i, (symbol, info, section, _, _) in enumerate(self.symbols):
            if section != 0 and info >> 4 != 0:
                assert set(self.look_up(symbol)) == {i}, symbol
        (i,) = set(self.look_up(name))
        _, info, _, value, size = self.symbols[i]
        assert info == 0x11  # global, data
        segment = next(s for s in self.segments if s[0] == 1 and s[3] <= value < s[3] + s[5])
        start = segment[2] + value - segment[3]
        return self.data[start:start + size]


def mapped_blob(path, name="__tvm_dev_mblob"):
    """What dlsym gives after dlopen."""
    symbol = ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(str(path)), name))
    n, = struct.unpack("<Q", ctypes.string_at(symbol, 8))
    return ctypes.string_at(symbol, 8 + n)


def params_records(data):
    """{name: record} of a parameter file."""
    c = Cursor(data)
    assert c.u64() == LIST
    c.u64()
    names = c.strings()
    assert c.u64() == len(names)
    return {name: c.array() for name in names}


def graph_package(data):
    """(graph, {name: (dtype code, bits, shape, bytes)}) of a packed graph of operators."""
    version, zero, size, text, text_bytes, rows, rows_bytes, count = struct.unpack_from("<IIQQQQQQ", data, 8)
    assert data[:8] == b"\x89HDLPK\r\n" and (version, zero, size, text) == (1, 0, len(data), 64) and rows % 8 == 0
    assert rows >= text + text_bytes and not any(data[text + text_bytes:rows])
    c, found, end = Cursor(data[:rows + rows_bytes]), {}, rows + rows_bytes
    c.at = rows
    for _ in range(count):
        name = c.string().decode()
        code, bits, lanes, ndim = struct.unpack("<BBHI", c.take(8))
        shape = struct.unpack(f"<{ndim}q", c.take(8 * ndim))
        at, n = c.u64(), (bits + 7) // 8
        for k in shape:
            n *= k
        assert lanes == 1 and at % (4096 if n >= 4096 else 64) == 0 and at >= end and not any(data[end:at])
        end = at + n
        assert end <= len(data) and name not in found
        found[name] = (code, bits, shape, data[at:end])
    assert c.at == rows + rows_bytes and end == len(data)
    return data[text:text + text_bytes].decode(), found
