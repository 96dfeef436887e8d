/* frontends/onnx/ml_scale.c: operators of ai.onnx.ml that change numbers or choose columns of them. */
#include <math.h>
#include <string.h>

#include "frontends/onnx/ml.h"

/* Input 0, where it is no text. */
static const char *number_input(heddle__ml *m) {
  if (heddle__onnx_known_of(m->r, m->node->input[0]).type == ONNX_STRING)
    heddle__ml_refuse(m, "its input is of strings");
  return heddle__ml_good(m) ? m->node->input[0] : NULL;
}

void heddle__ml_array_feature_extractor(heddle__ml *m) {
  const char *x = m->node->input[0];
  if (m->node->n_input < 2) heddle__ml_refuse(m, "it has no indexes");
  if (!heddle__ml_good(m)) return;
  const heddle__onnx_known known = heddle__onnx_known_of(m->r, x);
  if (known.rank == 1) x = heddle__ml_2(m, "Unsqueeze", x, heddle__ml_shape(m, 0), NULL);
  const char *at = heddle__ml_2(m, "Reshape", m->node->input[1], heddle__ml_shape(m, -1), NULL);
  heddle__ml_2(m, "Gather", x, at, heddle__ml_output(m, 0));
  heddle__ml_set_int(m, "axis", -1);
  if (heddle__ml_good(m) && heddle__ml_output(m, 0) != NULL)
    m->s = heddle__onnx_note(m->r, m->node->output[0], known.type, known.rank == 1 ? 2 : known.rank);
}

void heddle__ml_binarizer(heddle__ml *m) {
  const char *x = number_input(m);
  const int32_t type = x != NULL ? heddle__onnx_known_of(m->r, x).type : 0;
  if (type == 0) heddle__ml_refuse(m, "the type of its input is not known");
  const char *least = heddle__ml_number(m, heddle__ml_float(m, "threshold", 0));
  if (type == ONNX_DOUBLE) least = heddle__ml_cast(m, least, ONNX_DOUBLE, NULL);
  else x = heddle__ml_cast(m, x, ONNX_FLOAT, NULL);
  heddle__ml_cast(m, heddle__ml_2(m, "Greater", x, least, NULL), type, heddle__ml_output(m, 0));
}

void heddle__ml_scaler(heddle__ml *m) {
  size_t n_offset, n_scale;
  const float *offset = heddle__ml_floats(m, "offset", &n_offset), *scale = heddle__ml_floats(m, "scale", &n_scale);
  const char *x = number_input(m), *out = heddle__ml_output(m, 0);
  if (x != NULL) x = heddle__ml_cast(m, x, ONNX_FLOAT, NULL);
  if (n_offset > 0)
    x = heddle__ml_2(m, "Sub", x, heddle__ml_constant(m, ONNX_FLOAT, offset, (int64_t)n_offset, -1),
                     n_scale > 0 ? NULL : out);
  if (n_scale > 0) heddle__ml_2(m, "Mul", x, heddle__ml_constant(m, ONNX_FLOAT, scale, (int64_t)n_scale, -1), out);
  else if (n_offset == 0) heddle__ml_1(m, "Identity", x, out);
}

/* What a row is divided by; where that is 0 the row stays as it is. */
void heddle__ml_normalizer(heddle__ml *m) {
  static const char *const reduces[] = {"ReduceMax", "ReduceL1", "ReduceL2"};
  const int norm = heddle__ml_choice(m, "norm", "MAX", "MAX L1 L2");
  const char *x = number_input(m);
  if (x != NULL) x = heddle__ml_cast(m, x, ONNX_FLOAT, NULL);
  const char *by = heddle__ml_reduce(m, reduces[norm], x);
  const char *is_zero = heddle__ml_2(m, "Equal", by, heddle__ml_number(m, 0), NULL);
  by = heddle__ml_where(m, is_zero, heddle__ml_number(m, 1), by, NULL);
  heddle__ml_2(m, "Div", x, by, heddle__ml_output(m, 0));
}

void heddle__ml_imputer(heddle__ml *m) {
  size_t n_floats, n_ints;
  const float *floats = heddle__ml_floats(m, "imputed_value_floats", &n_floats);
  const int64_t *ints = heddle__ml_ints(m, "imputed_value_int64s", &n_ints);
  const float replaced = heddle__ml_float(m, "replaced_value_float", 0);
  const char *x = number_input(m), *out = heddle__ml_output(m, 0), *is_it;
  const int32_t type = x != NULL ? heddle__onnx_known_of(m->r, x).type : 0;
  const bool whole = type == ONNX_INT64 || (type == 0 && n_floats == 0);
  if ((whole ? n_ints : n_floats) == 0) heddle__ml_refuse(m, "it has no imputed values of its input's type");
  if (type != 0 && type != ONNX_FLOAT && type != ONNX_DOUBLE && type != ONNX_INT64)
    heddle__ml_refuse(m, "its input is neither float, double nor int64");
  if (!heddle__ml_good(m)) return;
  const char *values = whole ? heddle__ml_constant(m, ONNX_INT64, ints, (int64_t)n_ints, -1)
                             : heddle__ml_constant(m, ONNX_FLOAT, floats, (int64_t)n_floats, -1);
  const char *old =
      whole ? heddle__ml_whole(m, heddle__ml_int(m, "replaced_value_int64", 0)) : heddle__ml_number(m, replaced);
  if (type == ONNX_DOUBLE) {
    values = heddle__ml_cast(m, values, type, NULL);
    old = heddle__ml_cast(m, old, type, NULL);
  }
  if (!whole && isnan(replaced)) is_it = heddle__ml_1(m, "IsNaN", x, NULL);
  else is_it = heddle__ml_2(m, "Equal", x, old, NULL);
  heddle__ml_where(m, is_it, values, x, out);
}

/* Each input cut to so many columns, or filled with zeros. */
void heddle__ml_feature_vectorizer(heddle__ml *m) {
  size_t n;
  const int64_t *wanted = heddle__ml_ints(m, "inputdimensions", &n);
  const size_t n_in = m->node->n_input;
  const char **parts = heddle__ml_take(m, n_in, sizeof *parts);
  if (n != 0 && n != n_in) heddle__ml_refuse(m, "inputdimensions has %zu numbers for %zu inputs", n, n_in);
  for (size_t i = 0; i < n_in && heddle__ml_good(m); i++) {
    const char *x = heddle__ml_matrix(m, i, false, NULL);
    int64_t *pads = heddle__ml_take(m, 4, sizeof *pads);
    parts[i] = x;
    if (pads == NULL || n == 0) continue;
    if (wanted[i] < 0 || wanted[i] > 1 << 20) {
      heddle__ml_refuse(m, "inputdimensions has %lld", (long long)wanted[i]);
      return;
    }
    pads[3] = wanted[i];
    x = heddle__ml_2(m, "Pad", x, heddle__ml_constant(m, ONNX_INT64, pads, 4, -1), NULL);
    const char *const in[] = {x, heddle__ml_shape(m, 0), heddle__ml_shape(m, wanted[i]), heddle__ml_shape(m, 1)};
    parts[i] = heddle__ml_make(m, "Slice", NULL, 4, in);
  }
  heddle__ml_make(m, "Concat", heddle__ml_output(m, 0), n_in, parts);
  heddle__ml_set_int(m, "axis", 1);
}
