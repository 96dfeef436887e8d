/* The family of elementwise.cl: same, flat and walk of every operator. The type of the operands picks the variant, the
 * operator's word is a constant of it; movement, conversions and mixed powers have shaders of their own. */
#include "plugins/vulkan/vulkan.h"

#include "family.h"
#include "ops.h"
#include "plugins/vulkan/splice.h"

/* ---------------------------------------------------------------- types */

static const vlk_type types[] = {
    {"float", "f32", 4, VLK_REAL},    {"double", NULL, 8, VLK_REAL},      {"schar", "i8", 1, VLK_SIGNED},
    {"short", "i16", 2, VLK_SIGNED},  {"int", "i32", 4, VLK_SIGNED},      {"long", "i64", 8, VLK_SIGNED},
    {"uchar", "u8", 1, VLK_UNSIGNED}, {"ushort", "u16", 2, VLK_UNSIGNED}, {"uint", "u32", 4, VLK_UNSIGNED},
    {"ulong", NULL, 8, VLK_UNSIGNED},
};

const vlk_type *vlk_type_of(const k_step *step, const char *key) {
  char word[VLK_OPTION_BYTES];
  if (!vlk_option(step, key, word)) return NULL;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (strcmp(types[i].word, word) == 0) return &types[i];
  }
  return NULL;
}

heddle_status vlk_want_words(const vlk_info *info, uint32_t bytes, heddle_error *err) {
  if (bytes == 1 && !info->storage8)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "this device does not reach single bytes of memory (8-bit storage)");
  if (bytes == 2 && !info->storage16)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "this device does not reach words of 16 bits (16-bit storage)");
  return HEDDLE_OK;
}

heddle_status vlk_want_type(const vlk_info *info, const vlk_type *type, heddle_error *err) {
  if (type == NULL) return p_fail(err, HEDDLE_EINTERNAL, 0, "a step's type is not known");
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

static heddle_status read_place(const k_step *step, uint32_t n, place *out, heddle_error *err) {
  memset(out, 0, sizeof *out);
  out->walk = strcmp(step->name, "walk") == 0;
  if (!out->walk && strcmp(step->name, "flat") != 0 && strcmp(step->name, "same") != 0)
    return p_fail(err, HEDDLE_EINTERNAL, 0, "elementwise has no kernel '%s'", step->name);
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
  return HEDDLE_OK;
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

static heddle_status put_own_place(const k_step *step, uint32_t n, vlk_shader *out, heddle_error *err) {
  place at;
  heddle_status s = read_place(step, n, &at, err);
  if (s == HEDDLE_OK) put_place(&at, n, out);
  return s;
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

static int32_t find_op(const char *word, uint32_t n) {
  static const struct {
    uint32_t n, number;
    const char *word;
  } ops[] = {
#define ONE(number, word) {1, number, #word},
      VLK_OPS_1(ONE)
#undef ONE
#define TWO(number, word) {2, number, #word},
          VLK_OPS_2(TWO)
#undef TWO
#define THREE(number, word) {3, number, #word},
              VLK_OPS_3(THREE)
#undef THREE
  };
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    if (ops[i].n == n && strcmp(ops[i].word, word) == 0) return (int32_t)ops[i].number;
  }
  return -1;
}

static const char *double_of(const vlk_type *a, const vlk_type *b) {
  return (a->kind == VLK_REAL && a->bytes == 8) || (b->kind == VLK_REAL && b->bytes == 8) ? "double_" : "";
}

static heddle_status make_cast(const vlk_info *info, const k_step *step, const char *word, vlk_shader *out,
                               heddle_error *err) {
  const vlk_type *from = vlk_type_of(step, "T0"), *to = vlk_type_of(step, "TO");
  heddle_status s = vlk_want_type(info, from, err);
  if (s == HEDDLE_OK) s = vlk_want_type(info, to, err);
  if (s == HEDDLE_OK) s = vlk_pick_code(out, err, "cast_%s%u_%u", double_of(from, to), from->bytes, to->bytes);
  if (s == HEDDLE_OK) s = put_own_place(step, 1, out, err);
  if (s != HEDDLE_OK) return s;
  vlk_spec(out, from->kind);
  vlk_spec(out, to->kind);
  vlk_spec(out, strcmp(word, "CAST_BOOL") == 0 || strcmp(word, "CAST_TRUTH") == 0);
  return HEDDLE_OK;
}

static heddle_status make_pow(const vlk_info *info, const k_step *step, vlk_shader *out, heddle_error *err) {
  const vlk_type *base = vlk_type_of(step, "T0"), *exponent = vlk_type_of(step, "T1");
  heddle_status s = vlk_want_type(info, base, err);
  if (s == HEDDLE_OK) s = vlk_want_type(info, exponent, err);
  if (s == HEDDLE_OK)
    s = vlk_pick_code(out, err, "pow_%s%u_%u", double_of(base, exponent), base->bytes, exponent->bytes);
  if (s == HEDDLE_OK) s = put_own_place(step, 2, out, err);
  if (s != HEDDLE_OK) return s;
  vlk_spec(out, base->kind);
  vlk_spec(out, exponent->kind);
  return HEDDLE_OK;
}

/* Words moved as they are; 64 bits need no arithmetic. */
static heddle_status make_move(const vlk_info *info, const k_step *step, uint32_t n, vlk_shader *out,
                               heddle_error *err) {
  const vlk_type *type = vlk_type_of(step, "TO");
  if (type == NULL) return p_fail(err, HEDDLE_EINTERNAL, 0, "a step's type is not known");
  heddle_status s = vlk_want_words(info, type->bytes, err);
  if (s == HEDDLE_OK && n == 3) s = vlk_want_words(info, 1, err); /* the condition */
  if (s == HEDDLE_OK) s = vlk_pick_code(out, err, n == 1 ? "copy_%u" : "where_%u", type->bytes);
  place at;
  uint32_t wide = 0;
  if (s == HEDDLE_OK) s = read_place(step, n, &at, err);
  if (s != HEDDLE_OK) return s;
  const bool can = n == 1 && type->bytes == 4;
  const bool four = can && make_fours(&at, n, &wide) && wide == 1;
  if (can && !four) read_place(step, n, &at, NULL); /* one element that is repeated is read as such */
  put_place(&at, n, out);
  if (can) vlk_spec(out, four);
  return HEDDLE_OK;
}

enum {
#define NUMBER(number, word) OP_##word = number,
  VLK_OPS_1(NUMBER) VLK_OPS_2(NUMBER) VLK_OPS_3(NUMBER)
#undef NUMBER
};

static bool gives_truth(int32_t op) {
  return op == OP_NOT || (op >= OP_EQUAL && op <= OP_XOR);
}

/* The word of ops.h for a plan's, whose kind says what it is computed of. */
static void find_word(const char *name, const char *kind, const vlk_type *type, char word[32]) {
  const bool real = strcmp(kind, "REAL") == 0, whole = strcmp(kind, "INT") == 0;
  char plain[32];
  vlk_op_word(name, plain);
  const char *before = "";
  if (strcmp(plain, "ABS") == 0) before = real ? "F" : "I";
  else if (strcmp(plain, "NEG") == 0) before = real ? "F" : "";
  else if (strcmp(plain, "DIV") == 0 && whole) before = type != NULL && type->kind == VLK_UNSIGNED ? "U" : "I";
  else if (strcmp(plain, "POW") == 0 && whole) before = "I";
  const bool truth = strcmp(plain, "EQUAL") == 0 && strcmp(kind, "LOGIC") == 0;
  snprintf(word, 32, "%.1s%.30s", before, truth ? "SAME_TRUTH" : plain);
}

heddle_status vlk_elementwise(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                              heddle_error *err) {
  char name[VLK_OPTION_BYTES], kind[VLK_OPTION_BYTES], word[32];
  const uint32_t n = (uint32_t)vlk_option_int(step, "N_IN", 0);
  const vlk_type *type = vlk_type_of(step, "T0");
  place at;
  uint32_t wide = 0;
  (void)host;
  if (!vlk_option(step, "OP", name) || !vlk_option(step, "KIND", kind))
    return p_fail(err, HEDDLE_EINTERNAL, 0, "a step names no operator");
  find_word(name, kind, type, word);
  if (strncmp(word, "CAST", 4) == 0) return make_cast(info, step, word, out, err);
  const int32_t op = find_op(strcmp(word, "IPOW") == 0 ? "POW" : word, n);
  if (op < 0) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "there is no shader for %s of %u operands", word, n);
  if (strcmp(word, "COPY") == 0 || strcmp(word, "WHERE") == 0) return make_move(info, step, n, out, err);
  if (strcmp(word, "IPOW") == 0 || (strcmp(word, "POW") == 0 && type != vlk_type_of(step, "T1")))
    return make_pow(info, step, out, err);
  heddle_status s = vlk_want_type(info, type, err);
  if (s == HEDDLE_OK && type->name == NULL)
    s = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "there is no shader for %s of %s", word, type->word);
  if (s == HEDDLE_OK && gives_truth(op)) {
    s = vlk_want_words(info, 1, err);
    if (s == HEDDLE_OK) s = n == 1 ? vlk_pick_code(out, err, "not") : vlk_pick_code(out, err, "truth_%s", type->name);
  } else if (s == HEDDLE_OK) {
    s = vlk_pick_code(out, err, "elementwise_%s_%u", type->name, n);
  }
  if (s == HEDDLE_OK) s = read_place(step, n, &at, err);
  if (s != HEDDLE_OK) return s;
  const bool can = type->kind == VLK_REAL && !gives_truth(op), four = can && make_fours(&at, n, &wide);
  put_place(&at, n, out);
  vlk_spec(out, (uint32_t)op);
  if (!can) return HEDDLE_OK;
  vlk_spec(out, !four ? 0 : at.elements % 4 == 0 ? 2 : 1);
  vlk_spec(out, four ? wide : 0);
  return HEDDLE_OK;
}
