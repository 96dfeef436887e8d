"""python -m lm FOLDER: what scripts/make-model runs."""
import argparse

from lm import model
from lm.shapes import FAMILIES, SIZES


def main():
    words = argparse.ArgumentParser(prog="scripts/make-model", description="Writes a language model with random weights. A seed "
                                    "gives both forms the same weights, and so the same logits.")
    words.add_argument("folder")
    words.add_argument("--family", choices=FAMILIES, default="llama")
    words.add_argument("--size", choices=tuple(SIZES), default="tiny")
    words.add_argument("--form", choices=model.FORMS, default="builder", help="builder: as onnxruntime-genai's builder writes it; "
                       "plain: ONNX's own operators, as Optimum exports them")
    words.add_argument("--weights", choices=model.KINDS, default="float32", help="int4: in blocks of 32")
    words.add_argument("--seed", type=int, default=0)
    given = words.parse_args()
    print(model.make(given.folder, given.family, given.size, given.form, given.weights, given.seed))


if __name__ == "__main__":
    main()
