"""Models with strings and maps. A graph computes with numbers: here texts become numbers on their way in, and numbers texts
and maps on their way out."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from .errors import InvalidError
from .model import Model, TensorInfo

__all__ = ["TextModel"]

_TENSOR, _MAPS, _MAPS_OF_TEXTS = 1, 2, 3


class Texts:
    """What the numbers of a model's ports stand for."""

    def __init__(self, model: Model):
        self.texts = np.array(model.strings or [""], object)
        self.numbers = {text: i for i, text in enumerate(model.strings)}
        ports = model.string_ports
        self.kinds = {name: kind for name, kind, _ in ports}
        self.keys = {name: [self.text(key) if kind == _MAPS_OF_TEXTS else key for key in keys] for name, kind, keys in ports}

    def text(self, number: int) -> str:
        """The text of a number of the model's own."""
        return str(self.texts[number]) if 0 <= number < len(self.numbers) else ""

    def encode(self, name: str, value: Any, others: dict[str, int]) -> Any:
        """The numbers of a value for an input; others gets texts that are not the model's. Other inputs' values stay."""
        if self.kinds.get(name) != _TENSOR:
            return value
        array = np.asarray(value)
        if array.dtype.kind not in "OUST":
            raise InvalidError(f"input '{name}' is of strings, and what is given is of {array.dtype}")
        result = np.empty(array.shape, np.int64)
        flat, numbers, first = result.reshape(-1), self.numbers, len(self.numbers)
        for i, text in enumerate(array.reshape(-1).tolist()):
            if isinstance(text, bytes):
                text = text.decode()
            elif not isinstance(text, str):
                raise InvalidError(f"input '{name}' is of strings, and has a {type(text).__name__}")
            number = numbers.get(text)
            flat[i] = others.setdefault(text, first + len(others)) if number is None else number
        return result

    def decode(self, name: str, value: Any, others: Mapping[str, int]) -> Any:
        """An output's texts, as an array of objects; its maps, as a list; other outputs' values stay."""
        kind = self.kinds.get(name)
        if kind is None:
            return value
        if kind != _TENSOR:
            keys = self.keys[name]
            order = sorted(range(len(keys)), key=keys.__getitem__)  # as ONNX Runtime's maps
            return [{keys[i]: row[i] for i in order} for row in np.asarray(value).tolist()]
        texts = np.concatenate([self.texts[:len(self.numbers)], np.array([*others, ""], object)])
        value = np.asarray(value)
        outside = (value < 0) | (value >= len(texts))  # of no text that was given
        return texts[np.where(outside, len(texts) - 1, value)]


class TextModel(Model):
    """A model with strings or maps among its inputs and outputs: `load` gives one where a file has them.

    Inputs of strings take arrays of numpy's types str, bytes (UTF-8) and object, and lists. Outputs of strings are arrays of
    objects, and maps a list of dicts, as ONNX Runtime gives both. executor() gives the numbers behind them.
    """

    _known: Texts | None = None

    @property
    def texts(self) -> Texts:
        """What its numbers stand for."""
        if self._known is None:
            self._known = Texts(self)
        return self._known

    def _infos(self, infos: list[TensorInfo]) -> list[TensorInfo]:
        words = {None: None, _TENSOR: "string", _MAPS: "seq(map(int64,float32))", _MAPS_OF_TEXTS: "seq(map(string,float32))"}
        kinds = self.texts.kinds
        return [info._replace(dtype=words[kinds.get(info.name)] or info.dtype) for info in infos]

    @property
    def inputs(self) -> list[TensorInfo]:
        return self._infos(super().inputs)

    @property
    def outputs(self) -> list[TensorInfo]:
        return self._infos(super().outputs)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        given = self._named(inputs, named)
        others: dict[str, int] = {}
        result = super().run({name: self.texts.encode(name, value, others) for name, value in given.items()})
        values = [self.texts.decode(name, value, others) for name, value in result.items()]
        return values[0] if len(values) == 1 else tuple(values)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As Model.run, with texts and maps."""
        named = len(args) > 1 or "input_feed" in kwargs
        feed = args[1] if len(args) > 1 else args[0] if args else kwargs.pop("input_feed" if named else "inputs")
        others: dict[str, int] = {}
        feed = {name: self.texts.encode(name, value, others) for name, value in feed.items()}
        if not named:
            result = super().run(feed, *args[2:], **kwargs)
            return {name: self.texts.decode(name, value, others) for name, value in result.items()}
        wanted = args[0] if args else kwargs.pop("output_names", None)
        names = list(wanted) if wanted else list(self.output_names)
        return [self.texts.decode(name, value, others)
                for name, value in zip(names, super().run(names, feed, *args[2:], **kwargs))]
