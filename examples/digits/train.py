"""Trains the digits network with numpy alone and writes the graph, its weights and the held-back images.
`train.py` trains and writes (a few minutes on one core); `train.py --check` checks what is committed."""

import argparse
import os
import pathlib
import sys
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # one thread: the same sums in the same order every time

import numpy as np  # noqa: E402

import layers  # noqa: E402
import network  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SEED = 20240817
EPOCHS, BATCH, RATE, DECAY, SMOOTH, AVERAGE = 60, 32, 2e-3, 1e-3, 0.05, 0.998


def data():
    """(train images, train labels, held-back images, held-back labels); values 0..16, 360 held back."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 1, 8, 8).astype(np.float32)
    labels = labels.astype(np.int64)
    a, b, c, d = train_test_split(images, labels, test_size=0.2, random_state=SEED, stratify=labels)
    return a, c, b, d


def shifted(images, rng):
    """Each image moved by -1, 0 or 1 in both directions (half of them stay), with zeros coming in."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.empty_like(images)
    for i in range(len(images)):
        dy, dx = rng.integers(0, 3, 2) if rng.random() < 0.5 else (1, 1)
        out[i] = padded[i, :, dy : dy + 8, dx : dx + 8]
    return out


def accuracy(nodes, weights, images, labels):
    values, _ = layers.forward(nodes, {**weights, "image": images})
    return float((values[-1].argmax(axis=1) == labels).mean())


def train(nodes, weights, images, labels, rng):
    """Adam with decay, a cosine rate and smoothed labels; returns a running average of the weights."""
    logits = next(i for i, n in enumerate(nodes) if n["name"] == "classes")
    learned = [k for k, v in weights.items() if v.dtype == np.float32 and k != "scale.factor"]
    m = {k: np.zeros_like(weights[k]) for k in learned}
    v = {k: np.zeros_like(weights[k]) for k in learned}
    mean = {k: weights[k].copy() for k in weights}
    target = np.eye(10, dtype=np.float32) * (1 - SMOOTH) + SMOOTH / 10
    per_epoch, step, start = len(images) // BATCH, 0, time.monotonic()
    for epoch in range(EPOCHS):
        order, loss = rng.permutation(len(images)), 0.0
        for k in range(per_epoch):
            pick = order[k * BATCH : (k + 1) * BATCH]
            x, t = shifted(images[pick], rng), target[labels[pick]]
            values, kept = layers.forward(nodes, {**weights, "image": x})
            p = values[-1]
            loss -= float((t * np.log(p + 1e-12)).sum()) / BATCH
            grads = layers.backward(nodes, values, kept, logits, (p - t) / BATCH)
            step += 1
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / (EPOCHS * per_epoch))) * min(1.0, step / 100)
            for name in learned:
                g = grads[name]
                m[name] += 0.1 * (g - m[name])
                v[name] += 0.001 * (g * g - v[name])
                move = m[name] / (1 - 0.9**step) / (np.sqrt(v[name] / (1 - 0.999**step)) + 1e-8)
                if name.endswith(".weight"):
                    move = move + DECAY * weights[name]
                weights[name] = (weights[name] - rate * move).astype(np.float32)
                keep = min(AVERAGE, step / (step + 10))
                mean[name] = (keep * mean[name] + (1 - keep) * weights[name]).astype(np.float32)
        if (epoch + 1) % 10 == 0:
            seen = accuracy(nodes, mean, images, labels)
            took = time.monotonic() - start
            text = f"epoch {epoch + 1}: loss {loss / per_epoch:.4f}, train accuracy {seen:.4f}, {took:.0f} s"
            print(text, flush=True)
    return mean


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="check the committed files with onnx.reference")
    parser.add_argument("--output", type=pathlib.Path, default=HERE, help="the folder to write to, or to check")
    args = parser.parse_args()
    if args.check:
        import check

        return check.check(args.output)

    rng = np.random.default_rng(SEED)
    images, labels, held, held_labels = data()
    graph, weights = network.build(rng)
    weights = train(graph["nodes"], weights, images, labels, rng)
    print(f"held-back accuracy {accuracy(graph['nodes'], weights, held, held_labels):.4f} of {len(held)}")

    exact = {k: w.astype(np.float64) if w.dtype == np.float32 else w for k, w in weights.items()}
    expected = layers.forward(graph["nodes"], {**exact, "image": held.astype(np.float64)})[0][-1]
    args.output.mkdir(parents=True, exist_ok=True)
    network.write_graph(args.output / "digits.json", graph)
    network.write_params(args.output / "digits.params", weights)
    np.save(args.output / "images.npy", held.astype(np.uint8))
    np.save(args.output / "labels.npy", held_labels)
    np.save(args.output / "expected.npy", expected.astype(np.float32))
    return 0


if __name__ == "__main__":
    sys.exit(main())
