"""Weights of a seed: each by its name, so that both forms of a model have the same ones. Matrices are [out, in]."""
import zlib

import numpy as np

BLOCK = 32


class Weights:
    def __init__(self, shape, seed, kind, accuracy=1):
        """kind: float32, float16 or int4; accuracy: accuracy_level of products with int4."""
        self.shape, self.seed, self.kind, self.accuracy = shape, seed, kind, accuracy
        self.float = np.float16 if kind == "float16" else np.float32

    def _random(self, name):
        return np.random.Generator(np.random.Philox(key=[self.seed, zlib.crc32(name.encode())]))

    def matrix(self, name, rows, columns, gain=1.0):
        x = self._random(name).standard_normal((rows, columns), dtype=np.float32)
        return (x * np.float32(gain * columns ** -0.5)).astype(self.float)

    def norm(self, name, n):
        return (1 + 0.1 * self._random(name).standard_normal(n, dtype=np.float32)).astype(self.float)

    def bias(self, name, n):
        return (0.1 * self._random(name).standard_normal(n, dtype=np.float32)).astype(self.float)

    def embedding(self):
        s = self.shape
        gain = 0.15 if s.tied else 0.5  # of elements once they are scaled: tied ones must not answer with the word itself
        gain *= 1.0 if s.embed_scale else s.width ** 0.5
        return self.matrix("embed", s.words, s.width, gain)

    def rotary(self, theta):
        s = self.shape
        rates = theta ** -(np.arange(0, s.head, 2, dtype=np.float64) / s.head)
        angles = np.arange(s.context)[:, None] * rates[None]
        return np.cos(angles).astype(self.float), np.sin(angles).astype(self.float)

    def rates(self, theta):
        s = self.shape
        return (theta ** -(np.arange(0, s.head, 2, dtype=np.float64) / s.head)).astype(np.float32)


def quantise(w):
    """[N, K] into numbers of 4 bits [N, blocks, BLOCK] in 0..15 around 8, and scales [N, blocks]: the element that is
    farthest from 0 becomes -8."""
    n, k = w.shape
    blocks = -(-k // BLOCK)
    padded = np.zeros((n, blocks * BLOCK), np.float32)
    padded[:, :k] = w
    parts = padded.reshape(n, blocks, BLOCK)
    far = np.take_along_axis(parts, np.abs(parts).argmax(-1)[..., None], -1)[..., 0]
    scales = (far / np.float32(-8)).astype(np.float32)
    safe = np.where(scales == 0, np.float32(1), scales)
    q = np.clip(np.rint(parts / safe[..., None]) + 8, 0, 15).astype(np.uint8)
    return q, scales


def packed(q):
    """Two numbers a byte, the first in the low bits."""
    return (q[..., 0::2] | q[..., 1::2] << 4).astype(np.uint8)
