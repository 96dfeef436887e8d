/* frontends/onnx/texts.c: operators that make texts or read them, as those of domain heddle, which the host carries out. */
#include <string.h>

#include "frontends/onnx/objects.h"
#include "frontends/onnx/types.h"

static const struct row {
  const char *op;
  int64_t first; /* the opset that has it */
} rows[] = {
#define MADE_OF_TEXTS(op, opset) {#op, opset},
#include "operators/all.def"
};

static int32_t type_of(const heddle__onnx_reader *r, const Onnx__NodeProto *node, size_t i) {
  return i < node->n_input ? heddle__onnx_known_of(r, node->input[i]).type : 0;
}

/* Cast and CastLike where one side is of strings; *is_done stays false of others. */
static heddle_status cast(heddle__onnx_reader *r, Onnx__NodeProto *node, bool *is_done) {
  const bool is_like = strcmp(node->op_type, "CastLike") == 0;
  heddle__ml m = {.r = r, .node = node};
  const int32_t from = type_of(r, node, 0);
  const int32_t to = is_like ? type_of(r, node, 1) : (int32_t)heddle__onnx_attr_int(node, "to", 0);
  if (from != ONNX_STRING && to != ONNX_STRING) return HEDDLE_OK;
  const char *out = heddle__ml_output(&m, 0), *x = node->n_input > 0 ? node->input[0] : "";
  *is_done = true;
  if (out == NULL) return HEDDLE_OK;
  if (from == 0 || to == 0) heddle__ml_refuse(&m, "whether strings go in and come out is not known");
  heddle__ml_1(&m, from == to ? "Identity" : to == ONNX_STRING ? "NumberToText" : "TextToNumber", x, out);
  if (from != to) (void)heddle__ml_last(&m, true);
  if (from != to && to != ONNX_STRING) heddle__ml_set_int(&m, "to", to);
  if (heddle__ml_good(&m)) m.s = heddle__onnx_note(r, out, to, heddle__onnx_known_of(r, x).rank);
  if (m.s == HEDDLE_OK && m.refused) *is_done = heddle__ml_stand_in(&m);
  return m.s;
}

/* The node becomes that of domain heddle with the same name. */
static heddle_status become_own(heddle__onnx_reader *r, Onnx__NodeProto *node, bool *is_done) {
  node->domain = (char *)(uintptr_t) "heddle";
  const heddle_status s = heddle__onnx_learn_node(r, node);
  *is_done = true;
  return s == HEDDLE_OK ? heddle__onnx_add_node(r, node) : s;
}

HEDDLE__UPGRADE(heddle__upgrade_text) {
  if (strcmp(node->domain, "com.microsoft") == 0 && strcmp(node->op_type, "Tokenizer") == 0) {
    if (type_of(r, node, 0) == ONNX_STRING) return become_own(r, node, is_done);
    heddle__onnx_problem(r, node, "its input is not of strings");
    return HEDDLE_OK;
  }
  if (node->domain[0] != '\0') return HEDDLE_OK;
  if (strcmp(node->op_type, "Cast") == 0 || strcmp(node->op_type, "CastLike") == 0) return cast(r, node, is_done);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strcmp(rows[i].op, node->op_type) != 0 || r->opset < rows[i].first) continue;
    return become_own(r, node, is_done);
  }
  return HEDDLE_OK;
}
