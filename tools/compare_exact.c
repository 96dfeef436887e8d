/* tools/compare_exact.c: a node as a graph with operands of float64, run on the cpu. */
#include "compare_exact.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"
#include "text.h"

/* Which operands become float64: as many as the operator takes, so the later ones are tried where the first fails. */
enum { ALL_WIDE, FIRST_WIDE, NONE_WIDE, N_WAYS };

static bool widened(int way, uint32_t k) {
  return way == ALL_WIDE || (way == FIRST_WIDE && k == 0);
}

/* bfloat16 and float16 that stay themselves are not written: such an operand keeps the value that it has. */
static heddle_tensor *operand_of(const heddle_tensor *t, const double *x, bool wide) {
  const heddle_dtype is = heddle_tensor_dtype(t), f64 = {HEDDLE_DTYPE_FLOAT, 64, 1};
  heddle_tensor *made = NULL;
  if (!numbers_are_floats(is) || (!wide && is.bits == 16)) return heddle_tensor_retain((heddle_tensor *)(uintptr_t)t);
  if (heddle_tensor_create(NULL, wide ? f64 : is, heddle_tensor_shape(t), heddle_tensor_ndim(t), &made, NULL) !=
      HEDDLE_OK)
    return NULL;
  const uint64_t n = numbers_count(t);
  void *data = heddle_tensor_data(made);
  if (wide || is.bits == 64) {
    if (n > 0) memcpy(data, x, (size_t)n * sizeof *x);
  } else {
    for (uint64_t i = 0; i < n; i++) ((float *)data)[i] = (float)x[i];
  }
  return made;
}

/* A copy of the whole with nothing but the node's operands, of which x takes the place; the part is of that. */
static bool run_way(const session *s, const whole *w, uint32_t node, uint32_t k, const double *const *x, double *y,
                    uint64_t n, int way) {
  heddle_error err = {0};
  whole changed = *w;
  part p = {0};
  const uint32_t outputs = w->first[node + 1] - w->first[node];
  heddle_tensor **out = calloc((size_t)outputs + 1, sizeof(heddle_tensor *));
  changed.values = calloc((size_t)w->n_entries + 1, sizeof(heddle_tensor *));
  bool good = out != NULL && changed.values != NULL;
  for (uint32_t i = 0; good && i < whole_operands(w, node); i++) {
    const uint32_t entry = whole_operand(w, node, i);
    if (entry == UINT32_MAX || changed.values[entry] != NULL) continue;
    changed.values[entry] = operand_of(w->values[entry], x[i], widened(way, i));
    good = changed.values[entry] != NULL;
  }
  options o = *s->o;
  session on_cpu = *s;
  o.devices = "cpu";
  o.place = (words){0};
  o.memory = NULL;
  on_cpu.o = &o;
  on_cpu.model_flags = HEDDLE_MODEL_STRICT;
  good = good && part_make(&changed, node, node + 1, &p, &err) == HEDDLE_OK &&
         part_run(&on_cpu, &changed, &p, out, NULL, &err) == HEDDLE_OK && k < outputs &&
         numbers_known(heddle_tensor_dtype(out[k])) && numbers_count(out[k]) == n;
  for (uint64_t i = 0; good && i < n; i++) y[i] = number_at(out[k], i);
  for (uint32_t i = 0; out != NULL && i < outputs; i++) heddle_tensor_release(out[i]);
  for (uint32_t i = 0; changed.values != NULL && i < whole_operands(w, node); i++) {
    const uint32_t entry = whole_operand(w, node, i);
    if (entry == UINT32_MAX) continue;
    heddle_tensor_release(changed.values[entry]);
    changed.values[entry] = NULL;
  }
  free(changed.values);
  free(out);
  part_finish(&p);
  return good;
}

/* Magnitudes of float32 operands: a sum of what is positive is as good in float32, and much faster. */
static bool are_magnitudes(const whole *w, uint32_t node, const double *const *x) {
  for (uint32_t k = 0; k < whole_operands(w, node); k++) {
    const uint32_t entry = whole_operand(w, node, k);
    if (entry == UINT32_MAX || !numbers_are_floats(heddle_tensor_dtype(w->values[entry]))) continue;
    const heddle_tensor *t = w->values[entry];
    if (heddle_tensor_dtype(t).bits != 32) return false;
    for (uint64_t i = 0; i < numbers_count(t); i++)
      if (x[k][i] != fabs(number_at(t, i))) return false; /* NaN too */
  }
  return true;
}

bool exact_run(const session *s, const whole *w, uint32_t node, uint32_t k, const double *const *x, double *y,
               uint64_t n) {
  if (are_magnitudes(w, node, x) && run_way(s, w, node, k, x, y, n, NONE_WIDE)) return true;
  for (int way = 0; way < N_WAYS; way++)
    if (run_way(s, w, node, k, x, y, n, way)) return true;
  return false;
}
