"""heddle.signing: keys, signing, trust and encryption from Python.
labels: ctypes
"""
import base64
import gc

import numpy as np
import pytest

import heddle
from heddle import signing
from heddle.errors import DeniedError, UnsupportedError

GRAPH = ('{"heddle":{"version":1,"opset":17},"nodes":[{"op":"null","name":"x","inputs":[]},{"op":"Add","name":"y",'
         '"inputs":[[0,0,0],[0,0,0]]}],"arg_nodes":[0],"heads":[[1,0,0]],"node_row_ptr":[0,1,2],'
         '"attrs":{"shape":["list_shape",[[2],[2]]],"dltype":["list_str",["float32","float32"]]}}')
X = np.array([1, 2], np.float32)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "net.json").write_text(GRAPH)
    try:
        signing.create_key(tmp_path / "a")
    except UnsupportedError:
        pytest.skip("this build has no HEDDLE_SODIUM")
    signing.create_key(tmp_path / "c", encryption=True)
    return tmp_path


def works(model):
    assert np.array_equal(model(X), X + X)
    model.close()


def test_pack_and_load(folder):
    heddle.pack(folder / "net.heddle", folder / "net.json", sign=folder / "a", encrypt=folder / "c", sequence=3)
    trust = folder / "a.pub"
    works(heddle.load(folder / "net.heddle", trust=trust, key=folder / "c", devices="cpu"))
    says = signing.verify(folder / "net.heddle", trust)
    assert says == signing.read_signature(folder / "net.heddle") and says.sequence == 3 and not says.detached
    assert says.key_id and says.encryption_key_id
    assert trust.read_text().splitlines()[-1] == signing.public_key(folder / "a")
    with pytest.raises(DeniedError, match="encrypted with the key"):
        heddle.load(folder / "net.heddle", trust=trust)
    with pytest.raises(DeniedError, match="not signed"):
        heddle.load(folder / "net.json", trust=trust)
    signing.decrypt(folder / "net.heddle", folder / "plain.heddle", folder / "c")
    works(heddle.load(folder / "plain.heddle", devices="cpu"))
    with pytest.raises(heddle.errors.InvalidError):
        heddle.pack(folder / "n", folder / "net.json", sequence=3)


def test_text_in_memory(folder, monkeypatch):
    trust = folder / "a.pub"
    with pytest.raises(DeniedError, match="not signed"):
        heddle.loads(GRAPH, trust=trust)
    monkeypatch.setenv("HEDDLE_TRUST", str(trust))
    with pytest.raises(DeniedError, match="not signed"):
        heddle.loads(GRAPH)
    signing.sign(folder / "net.json", folder / "a", detached=False)
    works(heddle.loads((folder / "net.json").read_bytes(), devices="cpu"))
    with pytest.raises(DeniedError):
        heddle.runtime.load_param_dict(b"")


def test_callback(folder):
    text = (folder / "c").read_text().split()[-1]
    asked = []

    def give(key_id):
        asked.append(key_id)
        return base64.b64decode(text)
    signing.sign(folder / "net.json", encrypt=folder / "c")
    signing.set_key_callback(give)
    try:
        gc.collect()
        works(heddle.load(folder / "net.json", devices="cpu"))
        assert asked == [signing.read_signature(folder / "net.json").encryption_key_id]
        signing.set_key_callback(lambda key_id: None)
        with pytest.raises(DeniedError, match="encrypted with the key"):
            heddle.load(folder / "net.json")
        signing.set_key_callback(lambda key_id: b"short")
        with pytest.raises(heddle.Error, match="32 bytes"):
            heddle.load(folder / "net.json")
    finally:
        signing.set_key_callback(None)
    with pytest.raises(DeniedError):
        heddle.load(folder / "net.json")
