/* tools/quantize.c: heddle quantize: an ONNX model whose weights are integers in blocks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heddle/quantize.h"
#include "model_file.h"
#include "text.h"

static const option known[] = {
    {"output", OPTION_TEXT, "FILE.onnx", offsetof(options, output), "the file that is written (or -o)"},
    {"weights", OPTION_TEXT, "TYPE", offsetof(options, weights), "int4, the default, or int8"},
    {"block", OPTION_POSITIVE, "N", offsetof(options, block),
     "weights that share a scale: 16, 32 (the default) ... 256"},
    {"symmetric", OPTION_FLAG, NULL, offsetof(options, symmetric), "without zero points"},
    {"keep", OPTION_WORDS, "PATTERN", offsetof(options, keep), "nodes and weights of such names stay as they are"},
    {"form", OPTION_TEXT, "WORD", offsetof(options, form),
     "nbits, the default: MatMulNBits and GatherBlockQuantized; qdq: standard DequantizeLinear of opset 21"},
    {"accuracy-level", OPTION_COUNT, "N", offsetof(options, accuracy_level),
     "of MatMulNBits: 4 allows products of int8; 0 by default"},
    {"json", OPTION_FLAG, NULL, offsetof(options, json), "prints one JSON object"},
    OPTION_HELP,
    OPTION_END};

typedef struct totals {
  uint64_t before, after, n, kept;
  double worst;
  json_t *layers; /* NULL: as text */
  bool failed;
} totals;

static json_t *layer_json(const heddle_quantize_layer *l) {
  json_t *x = json_pack("{s:o,s:s,s:o,s:I,s:I}", "node", json_words(l->node), "op", l->op, "weight",
                        json_words(l->tensor), "rows", (json_int_t)l->rows, "columns", (json_int_t)l->columns);
  const int wrong = l->kept != NULL
                        ? json_object_set_new(x, "kept", json_words(l->kept))
                        : json_object_set_new(x, "error", json_real(l->error)) |
                              json_object_set_new(x, "worst", json_real(l->worst)) |
                              json_object_set_new(x, "bytes_before", json_integer((json_int_t)l->bytes_before)) |
                              json_object_set_new(x, "bytes_after", json_integer((json_int_t)l->bytes_after));
  if (wrong == 0) return x;
  json_decref(x);
  return NULL;
}

static void report(void *ctx, const heddle_quantize_layer *l) {
  totals *t = ctx;
  if (t->layers != NULL) {
    if (json_array_append_new(t->layers, layer_json(l)) != 0) t->failed = true;
  } else if (l->kept != NULL) {
    print("  %-40s %-7s kept: %s\n", l->node, l->op, l->kept);
  } else {
    print("  %-40s %-7s %6" PRId64 " x %-6" PRId64 " error %.3f%%, at most %.3g\n", l->node, l->op, l->rows, l->columns,
          100 * l->error, l->worst);
  }
  if (l->kept != NULL) {
    t->kept++;
    return;
  }
  t->n++;
  t->before += l->bytes_after != 0 ? l->bytes_before : 0; /* not the same weight once more */
  t->after += l->bytes_after;
  if (l->error > t->worst) t->worst = l->error;
}

/* The place of a word among words; -1. */
static int place_of(const char *word, const char *const *words, int n) {
  for (int i = 0; i < n; i++)
    if (strcmp(words[i], word) == 0) return i;
  return -1;
}

static int wrong(const char *what, const char *given, const char *expected) {
  print_error("heddle quantize: %s is '%s', expected %s\n", what, given, expected);
  return WRONG_WORDS;
}

static int quantize(const options *o) {
  static const char *const types[] = {"int4", "int8"}, *const forms[] = {"nbits", "qdq"};
  const char *weights = o->weights != NULL ? o->weights : "int4", *form = o->form != NULL ? o->form : "nbits";
  const int type = place_of(weights, types, 2), how = place_of(form, forms, 2);
  heddle_error err = {0};
  totals t = {.n = 0};
  if (o->output == NULL || !is_onnx_path(o->output)) {
    print_error("heddle quantize: where to? -o needs the name of an .onnx file\n");
    return WRONG_WORDS;
  }
  if (!is_onnx_path(o->model)) return wrong("the model", o->model, "a file whose name ends in .onnx");
  if (type < 0) return wrong("--weights", weights, "int4 or int8");
  if (how < 0) return wrong("--form", form, "nbits or qdq");
  if (o->block > 256 || o->accuracy_level > 4) {
    print_error("heddle quantize: --block is 16 to 256, --accuracy-level 0 to 4\n");
    return WRONG_WORDS;
  }
  const heddle_quantize_options q = {.struct_size = sizeof q,
                                     .bits = type == 0 ? 4 : 8,
                                     .block = (uint32_t)o->block,
                                     .flags = (o->symmetric ? HEDDLE_QUANTIZE_SYMMETRIC : 0) |
                                              (how == 1 ? HEDDLE_QUANTIZE_QDQ : 0),
                                     .accuracy_level = (uint32_t)o->accuracy_level,
                                     .keep = o->keep.data,
                                     .n_keep = o->keep.count,
                                     .report = report,
                                     .ctx = &t};
  if (o->json) t.layers = json_array();
  if (o->json && t.layers == NULL) return fail_text("quantize", "out of memory");
  if (heddle_quantize(o->model, o->output, &q, &err) != HEDDLE_OK) {
    json_decref(t.layers);
    return fail("quantize", &err);
  }
  if (t.failed) {
    json_decref(t.layers);
    return fail_text("quantize", "out of memory");
  }
  if (o->json)
    return print_json("quantize",
                      json_pack("{s:o,s:I,s:I,s:I,s:I,s:f,s:o}", "output", json_words(o->output), "quantized",
                                (json_int_t)t.n, "kept", (json_int_t)t.kept, "bytes_before", (json_int_t)t.before,
                                "bytes_after", (json_int_t)t.after, "error", t.worst, "layers", t.layers));
  print("wrote %s: %" PRIu64 " weights of %" PRIu64 " bytes in %" PRIu64 ", error at most %.3f%%; %" PRIu64 " kept\n",
        o->output, t.n, t.before, t.after, 100 * t.worst, t.kept);
  return DONE;
}

const command quantize_command = {
    "quantize",
    "an ONNX model with weights of 4 or 8 bits",
    "Writes an ONNX model whose constant weights of MatMul, Gemm and Gather are integers in blocks, each with a scale "
    "and a\n"
    "zero point, and prints the error of each weight: the root of the mean square, relative to the weight's.",
    known,
    true,
    quantize};
