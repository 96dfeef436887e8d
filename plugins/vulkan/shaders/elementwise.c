/* The family of elementwise.cl: same, flat and walk of every operator. What kind of elements it has and their type pick the
 * variant, the operator's number is a constant of it; movement, conversions and mixed powers have shaders of their own. */
#include "plugins/vulkan/vulkan.h"

#include "family.h"
#include "plugins/common/scalar.h"
#include "vulkan_scalars/scalar_list.h"

/* ---------------------------------------------------------------- types */

static const vlk_type types[K_ELEMENT_COUNT] = {
    [K_ELEMENT_W1] = {"u8", 1, VLK_UNSIGNED},   [K_ELEMENT_W2] = {"u16", 2, VLK_UNSIGNED},
    [K_ELEMENT_W4] = {"u32", 4, VLK_UNSIGNED},  [K_ELEMENT_W8] = {"u64", 8, VLK_UNSIGNED},
    [K_ELEMENT_F32] = {"f32", 4, VLK_REAL},     [K_ELEMENT_F64] = {"f64", 8, VLK_REAL},
    [K_ELEMENT_F16] = {"f16", 2, VLK_HALF},     [K_ELEMENT_BF16] = {"bf16", 2, VLK_BFLOAT},
    [K_ELEMENT_I8] = {"i8", 1, VLK_SIGNED},     [K_ELEMENT_I16] = {"i16", 2, VLK_SIGNED},
    [K_ELEMENT_I32] = {"i32", 4, VLK_SIGNED},   [K_ELEMENT_I64] = {"i64", 8, VLK_SIGNED},
    [K_ELEMENT_U8] = {"u8", 1, VLK_UNSIGNED},   [K_ELEMENT_U16] = {"u16", 2, VLK_UNSIGNED},
    [K_ELEMENT_U32] = {"u32", 4, VLK_UNSIGNED}, [K_ELEMENT_U64] = {"u64", 8, VLK_UNSIGNED},
    [K_ELEMENT_B8] = {"u8", 1, VLK_UNSIGNED},
};

const vlk_type *vlk_type_of(const k_step *step, uint32_t t) {
  return &types[step->code.types[t]];
}

heddle_status vlk_want_words(const vlk_info *info, uint32_t bytes, heddle_error *err) {
  if (bytes == 1 && !info->storage8)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "this device does not reach single bytes of memory (8-bit storage)");
  if (bytes == 2 && !info->storage16)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "this device does not reach words of 16 bits (16-bit storage)");
  return HEDDLE_OK;
}

heddle_status vlk_want_type(const vlk_info *info, const vlk_type *type, heddle_error *err) {
  if (type->bytes == 8 && !info->int64)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "this device does not compute in integers of 64 bits");
  if (type->bytes == 8 && type->kind == VLK_REAL && !info->float64)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "this device does not compute in float64");
  return vlk_want_words(info, type->bytes, err);
}

/* ---------------------------------------------------------------- places */

/* Where elements lie, as place.glsl reads it; count is of items. */
typedef struct place {
  bool walk;
  int64_t elements;
  k_walk w; /* count, base: of a flat one too, base being its steps */
} place;

static void read_place(const k_step *step, uint32_t n, place *out) {
  memset(out, 0, sizeof *out);
  out->walk = step->code.kernel == KERNEL_walk;
  if (out->walk) {
    out->w = step->params.walk;
  } else {
    const k_flat *p = &step->params.flat;
    out->w.count = p->count;
    out->w.alpha = p->alpha;
    out->w.beta = p->beta;
    for (uint32_t k = 0; k < n; k++) out->w.base[k] = p->step[k];
  }
  out->elements = out->w.count;
}

/* The one constant is WALK. */
static void put_place(const place *at, uint32_t n, vlk_shader *out) {
  const k_walk *w = &at->w;
  vlk_spec(out, at->walk);
  vlk_param(out, w->count);
  vlk_param(out, at->elements);
  vlk_param_float(out, w->alpha);
  vlk_param_float(out, w->beta);
  vlk_params(out, w->base, n);
  out->groups = ((uint64_t)w->count + K_GROUP - 1) / K_GROUP;
  if (!at->walk) return;
  vlk_param(out, w->dims);
  vlk_params(out, w->dim, K_DIMS);
  vlk_param(out, w->out_base);
  vlk_params(out, w->out_step, K_DIMS);
  for (uint32_t k = 0; k < n; k++) vlk_params(out, w->step[k], K_DIMS);
}

static void put_own_place(const k_step *step, uint32_t n, vlk_shader *out) {
  place at;
  read_place(step, n, &at);
  put_place(&at, n, out);
}

/* ---------------------------------------------------------------- fours */

/* All of a row of places but the last is a multiple of four, so that fours of it begin at fours. */
static bool in_fours(int64_t base, const int64_t *step, int64_t dims) {
  if (base % 4 != 0) return false;
  for (int64_t d = 0; d < dims - 1; d++) {
    if (step[d] % 4 != 0) return false;
  }
  return true;
}

static void to_fours(int64_t *base, int64_t *step, int64_t dims) {
  *base /= 4;
  for (int64_t d = 0; d < dims - 1; d++) step[d] /= 4;
}

/* Makes items of four elements, where these lie together in the result, and in each operand together (a bit of wide) or
 * all in one place. False, and nothing is changed, where they do not. */
static bool make_fours(place *at, uint32_t n, uint32_t *wide) {
  k_walk *w = &at->w;
  const int64_t last = w->dims - 1;
  *wide = 0;
  for (uint32_t k = 0; k < n; k++) {
    const int64_t step = at->walk ? w->step[k][last < 0 ? 0 : last] : w->base[k];
    if (step == 1) *wide |= UINT32_C(1) << k;
    else if (step != 0) return false;
  }
  if (!at->walk) {
    w->count = (w->count + 3) / 4;
    return true;
  }
  if (last < 0 || w->dim[last] % 4 != 0 || w->out_step[last] != 1 || !in_fours(w->out_base, w->out_step, w->dims))
    return false;
  for (uint32_t k = 0; k < n; k++) {
    if ((*wide >> k & 1) != 0 && !in_fours(w->base[k], w->step[k], w->dims)) return false;
  }
  w->count /= 4;
  w->dim[last] /= 4;
  to_fours(&w->out_base, w->out_step, w->dims);
  for (uint32_t k = 0; k < n; k++) {
    if ((*wide >> k & 1) != 0) to_fours(&w->base[k], w->step[k], w->dims);
  }
  return true;
}

/* ---------------------------------------------------------------- operators */

enum {
  VLK_SCALAR_REAL = 1,
  VLK_SCALAR_INT = 2,
  VLK_SCALAR_TEST_REAL = 4,
  VLK_SCALAR_TEST_INT = 8,
  VLK_SCALAR_LOGIC = 16,
  ANY_TEST = VLK_SCALAR_TEST_REAL | VLK_SCALAR_TEST_INT | VLK_SCALAR_LOGIC
};

/* A scalar expression: kinds of elements that it has, and which variant of kind REAL it is in; those of part 0 have float64. */
typedef struct scalar {
  const char *name;
  uint32_t number, kinds, part;
} scalar;

static const scalar scalars[] = {
#define ENTRY(number, name, kinds, part) {#name, number, kinds, part},
    VLK_SCALARS(ENTRY)
#undef ENTRY
};

/* The variants' numbers are of their own: scalars.cmake makes them of the same lines. */
static const scalar *find_scalar(const char *name) {
  for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
    if (strcmp(scalars[i].name, name) == 0) return &scalars[i];
  }
  return NULL;
}

/* Of a kind that a plan has, in variants. */
static const char *kind_word(uint8_t kind) {
  static const char *const words[] = {"REAL", "INT", "TEST_REAL", "TEST_INT", "LOGIC"};
  uint32_t i = 0;
  while (i < 4 && (kind >> i & 1) == 0) i++;
  return words[i];
}

static bool is_double(const vlk_type *type) {
  return type->kind == VLK_REAL && type->bytes == 8;
}

static const char *double_of(const vlk_type *a, const vlk_type *b) {
  return is_double(a) || is_double(b) ? "double_" : "";
}

static heddle_status make_cast(const vlk_info *info, const k_step *step, vlk_shader *out, heddle_error *err) {
  const vlk_type *from = vlk_type_of(step, 0), *to = vlk_type_of(step, K_RESULT_TYPE);
  heddle_status s = vlk_want_type(info, from, err);
  if (s == HEDDLE_OK) s = vlk_want_type(info, to, err);
  if (s == HEDDLE_OK) s = vlk_pick_code(out, err, "cast_%s%u_%u", double_of(from, to), from->bytes, to->bytes);
  if (s != HEDDLE_OK) return s;
  put_own_place(step, 1, out);
  vlk_spec(out, from->kind);
  vlk_spec(out, to->kind);
  vlk_spec(out, step->code.op == K_RAW_CAST_BOOL || step->code.op == K_RAW_CAST_TRUTH);
  return HEDDLE_OK;
}

static heddle_status make_pow(const vlk_info *info, const k_step *step, vlk_shader *out, heddle_error *err) {
  const vlk_type *base = vlk_type_of(step, 0), *exponent = vlk_type_of(step, 1);
  heddle_status s = vlk_want_type(info, base, err);
  if (s == HEDDLE_OK) s = vlk_want_type(info, exponent, err);
  if (s == HEDDLE_OK)
    s = vlk_pick_code(out, err, "pow_%s%u_%u", double_of(base, exponent), base->bytes, exponent->bytes);
  if (s != HEDDLE_OK) return s;
  put_own_place(step, 2, out);
  vlk_spec(out, base->kind);
  vlk_spec(out, exponent->kind);
  return HEDDLE_OK;
}

/* Words moved as they are; 64 bits need no arithmetic. */
static heddle_status make_move(const vlk_info *info, const k_step *step, uint32_t n, vlk_shader *out,
                               heddle_error *err) {
  const vlk_type *type = vlk_type_of(step, K_RESULT_TYPE);
  heddle_status s = vlk_want_words(info, type->bytes, err);
  if (s == HEDDLE_OK && n == 3) s = vlk_want_words(info, 1, err); /* the condition */
  if (s == HEDDLE_OK) s = vlk_pick_code(out, err, n == 1 ? "copy_%u" : "where_%u", type->bytes);
  place at;
  uint32_t wide = 0;
  if (s != HEDDLE_OK) return s;
  read_place(step, n, &at);
  const bool can = n == 1 && type->bytes == 4;
  const bool four = can && make_fours(&at, n, &wide) && wide == 1;
  if (can && !four) read_place(step, n, &at); /* one element that is repeated is read as such */
  put_place(&at, n, out);
  if (can) vlk_spec(out, four);
  return HEDDLE_OK;
}

/* Whether the part of the expressions has a variant of the type: some are of float32 alone (scalars.cmake). */
static bool has_part(const char *kind, uint32_t n, uint32_t part, const vlk_type *type) {
  char name[64];
  snprintf(name, sizeof name, "%s_%u_%u_%s", kind, n, part, type->name);
  return vlk_code_find(name) != NULL;
}

heddle_status vlk_elementwise(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                              heddle_error *err) {
  const uint32_t n = step->code.n_in, kind = step->code.kind;
  const vlk_type *type = vlk_type_of(step, 0);
  place at;
  uint32_t wide = 0;
  (void)host;
  if (kind == 0 && (step->code.op == K_RAW_COPY || step->code.op == K_RAW_WHERE))
    return make_move(info, step, n, out, err);
  if (kind == 0) return make_cast(info, step, out, err);
  const char *name = scalar_name(step->code.op), *word = kind_word(step->code.kind);
  const scalar *op = find_scalar(name);
  heddle_status s = vlk_want_type(info, type, err);
  if (s != HEDDLE_OK) return s;
  if (op == NULL || (op->kinds & kind) == 0)
    return p_fail(err, HEDDLE_EINTERNAL, 0, "there is no shader for %s of kind %s", name, word);
  const uint32_t part = kind == VLK_SCALAR_REAL ? op->part : 0;
  if (is_double(type) && part != 0 && !has_part(word, n, part, type))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "its shaders compute it in float32, not in float64");
  if (strcmp(name, "Pow") == 0 && (kind == VLK_SCALAR_INT || type != vlk_type_of(step, 1)))
    return make_pow(info, step, out, err);
  if ((kind & ANY_TEST) != 0) s = vlk_want_words(info, 1, err);
  if (s == HEDDLE_OK) s = vlk_pick_code(out, err, "%s_%u_%u_%s", word, n, part, type->name);
  if (s != HEDDLE_OK) return s;
  read_place(step, n, &at);
  const bool can = kind == VLK_SCALAR_REAL && type->kind == VLK_REAL && type->bytes == 4;
  const bool four = can && make_fours(&at, n, &wide);
  put_place(&at, n, out);
  vlk_spec(out, op->number);
  if (!can) return HEDDLE_OK;
  vlk_spec(out, !four ? 0 : at.elements % 4 == 0 ? 2 : 1);
  vlk_spec(out, four ? wide : 0);
  return HEDDLE_OK;
}
