"""ai.onnx.ml against ONNX Runtime: models generated over the attributes and types of each operator. HEDDLE_ML_DEVICES names a
list of devices. labels: ctypes
timeout: 300
"""
import contextlib
import itertools
import os
import tempfile

import capi
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

DEVICES = os.environ.get("HEDDLE_ML_DEVICES", "cpu")
POSTS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]


def typed(name, array, shape=None):
    kind = TensorProto.STRING if array.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape if shape is None else shape)


def model_of(op, inputs, outputs, version=3, **attrs):
    """A model of one node; inputs: {name: array}."""
    node = helper.make_node(op, list(inputs), outputs, domain="ai.onnx.ml", name="the_node", **attrs)
    graph = helper.make_graph([node], "g", [typed(k, v) for k, v in inputs.items()],
                              [helper.make_empty_tensor_value_info(o) for o in outputs])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def expected(model, inputs):
    """What ONNX Runtime gives; of types that it has no kernel for, of the same numbers as float32."""
    try:
        return run_peer(model, inputs)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        wide = {k: x.astype(np.int64 if "OneHot" in model.graph.node[0].op_type else np.float32) for k, x in inputs.items()}
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        for value in copy.graph.input:
            value.CopyFrom(typed(value.name, wide[value.name]))
        return run_peer(copy, wide)


def run_peer(model, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(y) for y in session.run(None, inputs)]


@contextlib.contextmanager
def loaded(model, outputs=None, device=DEVICES):
    """An executor of the model, whose outputs get the types of these arrays."""
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    for value, array in zip(copy.graph.output, outputs or []):
        value.CopyFrom(typed(value.name, array, [None] * array.ndim))
    ctx, m, e = capi.Context(), None, None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(copy, path)
        try:
            m = capi.Model.load(ctx, path, devices=device)
            e = capi.Executor(m)
            yield e
        finally:
            for x in (e, m, ctx):
                if x is not None:
                    x.close()


def run(model, inputs, outputs, device=DEVICES):
    with loaded(model, outputs, device) as e:
        for name, array in inputs.items():
            e.set_input(name, array)
        e.run()
        return e.outputs()


def check(model, inputs, want=None, atol=2e-5):
    want = expected(model, inputs) if want is None else want
    got = run(model, inputs, want)
    assert len(got) == len(want)
    for i, (g, w) in enumerate(zip(got, want)):
        assert g.dtype == w.dtype and g.shape == w.shape, f"output {i}: {g.dtype}{g.shape}, expected {w.dtype}{w.shape}"
        if w.dtype.kind == "f":
            np.testing.assert_allclose(g, w, rtol=2e-4, atol=atol)
        else:
            np.testing.assert_array_equal(g, w)


def matrix(rng, rows, columns, dtype=np.float32):
    x = rng.normal(size=(rows, columns)) * (10 if np.dtype(dtype).kind == "i" else 1)
    return x.astype(dtype)


# ---- trees

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def forest(rng, trees, features, ids, weights, modes=("BRANCH_LEQ",), depth=4, prefix="class", several=False):
    """Random trees: nodes in any order of numbers, leaves with one weight, or one for each id."""
    a = {k: [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
                         "missing_value_tracks_true")}
    leaves = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}

    def node(tree, level, names):
        name = names.pop()
        row = len(a["nodeids"])
        is_leaf = level == 0 or rng.random() < 0.2
        for key in a:
            a[key].append(0)
        a["treeids"][row], a["nodeids"][row] = tree, name
        if is_leaf:
            a["modes"][row] = "LEAF"
            for i in (ids if several else [ids[rng.integers(len(ids))]]):
                leaves["treeids"].append(tree)
                leaves["nodeids"].append(name)
                leaves["ids"].append(i)
                leaves["weights"].append(float(weights(rng)))
            return name
        a["modes"][row] = str(rng.choice(modes))
        a["values"][row] = float(np.float32(rng.choice([-1, -0.5, 0, 0.5, 1])))
        a["featureids"][row] = int(rng.integers(features))
        a["missing_value_tracks_true"][row] = int(rng.integers(2))
        a["truenodeids"][row] = node(tree, level - 1, names)
        a["falsenodeids"][row] = node(tree, level - 1, names)
        return name

    for tree in range(trees):
        first, first_leaf = len(a["nodeids"]), len(leaves["nodeids"])
        node(tree, depth, list(range(99, -1, -1)))
        new = [int(i) for i in rng.permutation(len(a["nodeids"]) - first)]
        for key in ("nodeids", "truenodeids", "falsenodeids"):
            a[key][first:] = [new[i] for i in a[key][first:]]
        leaves["nodeids"][first_leaf:] = [new[i] for i in leaves["nodeids"][first_leaf:]]
    a["values"] = [float(v) for v in a["values"]]
    return {**{f"nodes_{k}": v for k, v in a.items()}, **{f"{prefix}_{k}": v for k, v in leaves.items()}}


def with_gaps(rng, x):
    """Values that are equal to splits, and NaN."""
    x = np.round(x * 2) / 2
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(dtype, aggregate):
    rng = np.random.default_rng(1)
    for targets, several, base in itertools.product((1, 3), (False, True), (False, True)):
        if base and not several:
            continue  # ONNX Runtime gives a target without a value no base value either
        for post in POSTS if aggregate == "SUM" and targets == 3 and several else ["NONE"]:
            x = matrix(rng, 17, 4, dtype)
            x = with_gaps(rng, x) if np.dtype(dtype).kind == "f" else x
            tree = forest(rng, 5, 4, list(range(targets)), lambda r: r.random() * 0.1, MODES, prefix="target", several=several)
            if base:
                tree["base_values"] = [0.01 * (i + 1) for i in range(targets)]
            check(model_of("TreeEnsembleRegressor", {"x": x}, ["y"], n_targets=targets, aggregate_function=aggregate,
                           post_transform=post, **tree), {"x": x})


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("post", POSTS)
def test_tree_classifier(dtype, post):
    rng = np.random.default_rng(2)
    for several, signed in itertools.product((False, True), (False, True)):
        x = matrix(rng, 33, 4, dtype)
        x = with_gaps(rng, x) if np.dtype(dtype).kind == "f" else x
        tree = forest(rng, 6, 4, [0, 1, 2], lambda r: r.random() / 8 - (0.05 if signed else 0), MODES, several=several)
        for base in ({}, {"base_values": [0.1, 0.2, 0.3]}):
            if post == "SOFTMAX_ZERO" and not several:
                continue  # ONNX Runtime's zeros are of classes without a value
            check(model_of("TreeEnsembleClassifier", {"x": x}, ["label", "score"], classlabels_int64s=[7, 5, 9],
                           post_transform=post, **tree, **base), {"x": x}, None,
                  1e-3 if post == "PROBIT" else 2e-5)  # ONNX Runtime's differences of float32 cancel


@pytest.mark.parametrize("post", POSTS[:4])
@pytest.mark.parametrize("signed", [False, True])
def test_tree_classifier_of_two(post, signed):
    rng = np.random.default_rng(3)
    x = with_gaps(rng, matrix(rng, 33, 4))
    for only, base in itertools.product((0, 1), (False, True)):
        tree = forest(rng, 4, 4, [only], lambda r: r.random() / 3 - (0.15 if signed else 0))
        more = {"base_values": [0.1]} if base else {}
        check(model_of("TreeEnsembleClassifier", {"x": x}, ["label", "score"], classlabels_int64s=[7, 5],
                       post_transform=post, **tree, **more), {"x": x})


def test_tree_as_tensors():
    rng = np.random.default_rng(4)
    x = matrix(rng, 9, 4, np.float64)
    tree = forest(rng, 3, 4, [0], lambda r: r.random(), prefix="target")
    for name in ("nodes_values", "target_weights"):
        numbers = tree.pop(name)
        tree[name + "_as_tensor"] = helper.make_tensor(name, TensorProto.DOUBLE, [len(numbers)], numbers)
    inputs = {"x": x}
    check(model_of("TreeEnsembleRegressor", inputs, ["y"], n_targets=1, **tree), inputs)


def flat_forest(rng, dtype, sets):
    """TreeEnsemble of version 5: two trees of two nodes each, the second of which may test for members."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    splits, modes = [0.5, -0.5, 0.0, 0.25], [0, 6 if sets else 2, 1, 6 if sets else 3]
    weights = [0.5, 1.5, -2.0, 3.0, 0.25, 1.0]
    more = {"membership_values": helper.make_tensor("m", kind, [5], [1.0, 0.5, np.nan, -1.0, np.nan])} if sets else {}
    return dict(
        tree_roots=[0, 2], nodes_featureids=[0, 1, 2, 0], nodes_splits=helper.make_tensor("s", kind, [4], splits),
        nodes_modes=helper.make_tensor("m", TensorProto.UINT8, [4], modes), nodes_truenodeids=[1, 0, 3, 3],
        nodes_trueleafs=[0, 1, 0, 1], nodes_falsenodeids=[2, 1, 5, 4], nodes_falseleafs=[1, 1, 1, 1],
        leaf_targetids=[0, 1, 0, 1, 1, 0], leaf_weights=helper.make_tensor("w", kind, [6], weights), n_targets=2, **more)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tree_ensemble(dtype):
    rng = np.random.default_rng(5)
    x = np.round(matrix(rng, 30, 3, dtype) * 2) / 2
    for sets, how in ((False, 0), (False, 1), (False, 2), (False, 3), (True, 0), (True, 1)):
        model = model_of("TreeEnsemble", {"x": x}, ["y"], 5, aggregate_function=how, **flat_forest(rng, dtype, sets))
        # ONNX Runtime takes -1.5 for a member of {-1}
        check(model, {"x": x}, ReferenceEvaluator(model).run(None, {"x": x}) if sets else None)


# ---- linear models

@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_linear(dtype):
    rng = np.random.default_rng(6)
    x = matrix(rng, 11, 5, dtype)
    for n, post in itertools.product((1, 2, 4), POSTS):
        weights = [float(v) for v in rng.normal(size=5 * n) / 5]
        rows = [float(v) for v in rng.normal(size=n)]
        labels = [3, 1, 4, 15][:max(n, 2)]
        if not (n == 1 and post == "PROBIT"):  # ONNX Runtime moves its scores by a row
            check(model_of("LinearClassifier", {"x": x}, ["label", "score"], coefficients=weights, intercepts=rows,
                           classlabels_ints=labels, post_transform=post), {"x": x})
        for intercepts in ({}, {"intercepts": rows}):
            check(model_of("LinearRegressor", {"x": x}, ["y"], coefficients=weights, targets=n, post_transform=post,
                           **intercepts), {"x": x})


# ---- support vector machines

KERNELS = [("LINEAR", [0, 0, 0]), ("POLY", [0.3, 0.5, 3]), ("RBF", [0.4, 0, 0]), ("SIGMOID", [0.2, 0.1, 0])]


@pytest.mark.parametrize("kernel,params", KERNELS)
def test_svm(kernel, params):
    rng = np.random.default_rng(7)
    x = matrix(rng, 13, 4)
    params = [float(p) for p in params]
    for classes, proba, post in itertools.product((2, 3, 4), (False, True), POSTS[:4]):
        per = [int(k) for k in rng.integers(1, 4, size=classes)]
        pairs = classes * (classes - 1) // 2

        def some(n):
            return [float(v) for v in rng.normal(size=n)]

        more = {"prob_a": [-abs(v) for v in some(pairs)], "prob_b": some(pairs)} if proba else {}
        if kernel == "POLY" and classes == 2 and not proba:
            continue
        check(model_of("SVMClassifier", {"x": x}, ["label", "score"], kernel_type=kernel, kernel_params=params,
                       support_vectors=some(4 * sum(per)), coefficients=some((classes - 1) * sum(per)), rho=some(pairs),
                       vectors_per_class=per, classlabels_ints=list(range(10, 10 + classes)), post_transform=post, **more),
              {"x": x})
    for n, one in itertools.product((0, 5), (0, 1)):
        check(model_of("SVMRegressor", {"x": x}, ["y"], kernel_type=kernel, kernel_params=params, n_supports=n,
                       **({"support_vectors": [float(v) for v in rng.normal(size=4 * n)]} if n else {}), one_class=one,
                       coefficients=[float(v) for v in rng.normal(size=n or 4)], rho=[0.3]), {"x": x})


# ---- numbers and columns

@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_numbers(dtype):
    rng = np.random.default_rng(8)
    for shape in ((7, 4), (4,)):
        x = (rng.normal(size=shape) * 3).astype(dtype)
        x.flat[:4] = 0
        inputs = {"x": x}
        for offset, scale in itertools.product(([], [0.5], [1.0, 2.0, 3.0, 4.0]), repeat=2):
            if bool(offset) == bool(scale) and (len(offset) == len(scale)) and offset:
                check(model_of("Scaler", inputs, ["y"], offset=offset, scale=scale), inputs)
        for norm in ("MAX", "L1", "L2"):
            check(model_of("Normalizer", inputs, ["y"], norm=norm), inputs)
        for threshold in (0.0, 1.0):
            if dtype == np.float32:
                check(model_of("Binarizer", inputs, ["y"], threshold=threshold), inputs)
        at = np.array([[2, 0, 1]], np.int64)
        check(model_of("ArrayFeatureExtractor", {**inputs, "at": at}, ["y"]), {**inputs, "at": at})
        if np.dtype(dtype) in (np.dtype(np.float32), np.dtype(np.int64)) and len(shape) == 2:
            type_ = float if np.dtype(dtype).kind == "f" else int
            kind, name = ("float", "floats") if np.dtype(dtype).kind == "f" else ("int64", "int64s")
            for n, old in itertools.product((1, 4), (0, np.nan) if kind == "float" else (0,)):
                if old != old:
                    x.flat[5:9] = np.nan
                check(model_of("Imputer", inputs, ["y"], **{f"imputed_value_{name}": [type_(v) for v in (9, 8, 7, 6)][:n],
                                                            f"replaced_value_{kind}": type_(old)}), inputs)


def test_feature_vectorizer():
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[8], [9]], np.float32)
    for dims in ([3, 1], [2, 3], [5, 1]):
        inputs = {"a": a, "b": b}
        want = np.concatenate([np.pad(x, [(0, 0), (0, n)])[:, :n] for x, n in zip((a, b), dims)], axis=1)
        check(model_of("FeatureVectorizer", inputs, ["y"], 1, inputdimensions=dims), inputs, [want])


KEYS = {"int64s": ([3, 1, -2, 3], np.int64), "floats": ([0.5, 2.0, -1.0, 0.5], np.float32)}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", KEYS)
def test_label_encoder(key, value):
    keys, dtype = KEYS[key]
    x = np.array([*keys, 7, -7], dtype).reshape(2, 3)
    for default in ({}, {"default_int64": 5, "default_float": 2.5}):
        check(model_of("LabelEncoder", {"x": x}, ["y"], 2, **{f"keys_{key}": keys, f"values_{value}": [KEYS[value][1](v).item() for v in (4, 3, 2, 1)]},
                       **default), {"x": x})


def test_label_encoder_tensors():
    x = np.array([1.5, 2.5, np.nan, 8], np.float64)
    attrs = {"keys_tensor": helper.make_tensor("k", TensorProto.DOUBLE, [3], [2.5, np.nan, 1.5]),
             "values_tensor": helper.make_tensor("v", TensorProto.INT16, [3], [-3, 7, 4]),
             "default_tensor": helper.make_tensor("d", TensorProto.INT16, [1], [9])}
    model = model_of("LabelEncoder", {"x": x}, ["y"], 4, **attrs)
    check(model, {"x": x}, [np.array([4, -3, 7, 9], np.int16)])


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64, np.int32])
def test_one_hot_encoder(dtype):
    x = np.array([[1, 5, 3], [9, 1, 4]], dtype)
    check(model_of("OneHotEncoder", {"x": x}, ["y"], cats_int64s=[1, 3, 9, 5], zeros=1), {"x": x})
    model = model_of("OneHotEncoder", {"x": x}, ["y"], cats_int64s=[1, 3, 9, 5], zeros=0)
    if DEVICES != "cpu":
        return  # accelerators have zeros for what is no category
    with pytest.raises(capi.HeddleError, match="the_node"):
        run(model, {"x": x}, [np.zeros((2, 3, 4), np.float32)])
    x[1, 2] = 5
    check(model, {"x": x})


# ---- what is wrong with a file

def test_refusals():
    x = np.zeros((2, 4), np.float32)

    def tree(**changes):
        base = dict(nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0],
                    nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.5, 0.0, 0.0], nodes_truenodeids=[1, 0, 0],
                    nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0],
                    target_weights=[0.2, 0.7], n_targets=1)
        return model_of("TreeEnsembleRegressor", {"x": x}, ["y"], **{**base, **changes})

    branch = ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"]
    cases = [
        (tree(nodes_truenodeids=[9, 0, 0]), "node 0 of tree 0 leads to node 9"),
        (tree(nodes_modes=branch), "its nodes go round"),
        (tree(nodes_truenodeids=[0, 0, 0]), "its nodes go round"),
        (tree(nodes_values=[0.5]), "3 nodes, 1 values"),
        (tree(nodes_featureids=[0, 0]), "nodes_featureids has 2 numbers, expected 3"),
        (tree(nodes_nodeids=[0, 1, 1]), "listed twice"),
        (tree(target_nodeids=[1, 5]), "node 5 of tree 0, which is not there"),
        (tree(target_ids=[0, 4]), "target 4, and there are 1"),
        (tree(nodes_featureids=[-1, 0, 0]), "feature -1"),
        (tree(nodes_featureids=[4, 0, 0]), "tests feature 4, and X has 4"),
        (tree(nodes_modes=["BRANCH", "LEAF", "LEAF"]), "no mode"),
        (tree(n_targets=-3), "there are -3"),
        (tree(nodes_trees=[0]), "no attribute 'nodes_trees'"),
        (tree(post_transform="SOFT"), "post_transform"),
        (model_of("LinearClassifier", {"x": x}, ["l", "p"], coefficients=[1.0] * 7, intercepts=[0.0, 0.0],
                  classlabels_ints=[1, 2]), "7 coefficients for 2 targets"),
        (model_of("LinearClassifier", {"x": x}, ["l", "p"], coefficients=[1.0] * 8, intercepts=[0.0, 0.0]), "has neither"),
        (model_of("SVMClassifier", {"x": x}, ["l", "p"], coefficients=[1.0], vectors_per_class=[1, -1], rho=[0.0],
                  support_vectors=[1.0], classlabels_ints=[1, 2]), "vectors_per_class has -1"),
        (model_of("LabelEncoder", {"x": x}, ["y"], keys_floats=[1.0, 2.0], values_int64s=[1]), "2 keys and 1 values"),
        (model_of("Scaler", {"x": x}, ["y"], offset=3), "another kind"),
        (model_of("DictVectorizer", {"x": x}, ["y"], int64_vocabulary=[1]), "not known in opset 3 of ai.onnx.ml"),
    ]
    for model, words in cases:
        with pytest.raises(capi.HeddleError) as e:
            with loaded(model, [np.zeros((2, 1), np.float32)] * len(model.graph.output)) as executor:
                executor.set_input("x", x)
                executor.run()
        assert words in str(e.value), (words, str(e.value))
        assert "the_node" in str(e.value)
