"""Models with strings, maps, sequences and optionals. A graph computes with numbers: here texts and lists become numbers on
their way in, and numbers texts, lists and maps on their way out."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from .errors import InvalidError
from .model import Model, TensorInfo

__all__ = ["ObjectModel", "TextModel"]

_TENSOR, _MAPS, _MAPS_OF_TEXTS, _SEQUENCE, _TEXTS, _OPTIONAL = 1, 2, 3, 4, 5, 8
_NO_OBJECT = -1


def _word(kind: int) -> str | None:
    """What an input or output of a kind is; None: a tensor of numbers."""
    words = {_TENSOR: "string", _MAPS: "seq(map(int64,float32))", _MAPS_OF_TEXTS: "seq(map(string,float32))",
             _SEQUENCE: "seq(tensor)", _TEXTS: "seq(string)"}
    word = words.get(kind & ~_OPTIONAL)
    return f"optional({word or 'tensor'})" if kind & _OPTIONAL else word


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
        return [info._replace(dtype=_word(self.texts.kinds.get(info.name, 0)) or info.dtype) for info in infos]

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


class _Objects:
    """Values of one executor: numbers for texts and lists, and back."""

    def __init__(self, executor: Any, texts: Texts):
        self.executor, self.known = executor, texts

    def _codes(self, name: str, value: Any) -> Any:
        array = np.asarray(value)
        if array.size == 0:
            return np.empty(array.shape, np.int64)
        if array.dtype.kind not in "OUST":
            raise InvalidError(f"input '{name}' is of strings, and what is given is of {array.dtype}")
        items = array.reshape(-1).tolist()
        other = next((item for item in items if not isinstance(item, (str, bytes))), None)
        if other is not None:
            raise InvalidError(f"input '{name}' is of strings, and has a {type(other).__name__}")
        return np.array(self.executor.text_codes(items), np.int64).reshape(array.shape)

    def encode(self, name: str, value: Any) -> Any:
        """What is to be set as the input."""
        kind = self.known.kinds.get(name, 0)
        plain = kind & ~_OPTIONAL
        if kind & _OPTIONAL and value is None:
            return np.array(_NO_OBJECT, np.int64)
        if value is None:
            raise InvalidError(f"input '{name}' is no optional, and is given None")
        is_list = plain in (_SEQUENCE, _TEXTS)
        if is_list and not isinstance(value, (list, tuple)):
            raise InvalidError(f"input '{name}' is a sequence: it takes a list, not {type(value).__name__}")
        items = list(value) if is_list else [value]
        if plain in (_TENSOR, _TEXTS):
            items = [self._codes(name, item) for item in items]
        if kind in (0, _TENSOR):
            return items[0]
        items = [np.ascontiguousarray(item) if np.ndim(item) else np.asarray(item) for item in map(np.asarray, items)]
        return np.array(self.executor.sequence(items), np.int64)

    def _texts(self, array: Any) -> Any:
        result = np.empty(array.shape, object)
        result.reshape(-1)[:] = self.executor.texts(array.reshape(-1).tolist())
        return result

    def decode(self, name: str, value: Any) -> Any:
        """What an output gives."""
        kind = self.known.kinds.get(name, 0)
        plain = kind & ~_OPTIONAL
        if plain in (_MAPS, _MAPS_OF_TEXTS):
            return self.known.decode(name, value, {})
        if kind == _TENSOR:
            return self._texts(value)
        if kind == 0:
            return value
        if int(value) == _NO_OBJECT:
            return None
        items = [tensor.numpy().copy() for tensor in self.executor.sequence_items(int(value))]
        if plain in (_TENSOR, _TEXTS):
            items = [self._texts(item) for item in items]
        return items if plain in (_SEQUENCE, _TEXTS) else items[0]


class ObjectModel(TextModel):
    """A model whose runs make texts, or that has sequences or optionals: `load` gives one where a file has them.

    Sequences are lists of arrays and optionals may be None, as with ONNX Runtime. Calls run on executors of their own, as
    many as run at once.
    """

    _free: list[_Objects] | None = None

    def _run_objects(self, feed: Mapping[str, Any], timeout: float | None) -> dict[str, Any]:
        if self._free is None:
            self._free = []
        try:
            objects = self._free.pop()  # of another thread's at no time
        except IndexError:
            objects = _Objects(self.executor(), self.texts)
        for name, value in feed.items():
            objects.executor.set_input(name, objects.encode(name, value))
        objects.executor.run(timeout)
        result = {name: objects.decode(name, np.asarray(objects.executor.get_output(i).numpy()))
                  for i, name in enumerate(self.output_names)}
        self._free.append(objects)
        return result

    def close(self) -> None:
        """As Model.close."""
        self._free = None
        super().close()

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        values = list(self._run_objects(self._named(inputs, named), None).values())
        return values[0] if len(values) == 1 else tuple(values)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As Model.run, with texts, lists and None."""
        named = len(args) > 1 or "input_feed" in kwargs
        feed = args[1] if len(args) > 1 else args[0] if args else kwargs.pop("input_feed" if named else "inputs")
        result = self._run_objects(feed, kwargs.get("timeout"))
        wanted = args[0] if named and args else kwargs.get("output_names")
        return [result[name] for name in wanted or self.output_names] if named else result
