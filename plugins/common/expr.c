/* Elementwise expressions: the table of operators, the pieces that programs are put together from, and the parser of
 * the text, which descends by hand and stops at every limit. */
#include "expr.h"

#include "perror.h"
#include "scalar.h"

#include <math.h>
#include <stdlib.h>

enum { MANY = UINT8_MAX };

/* Three operands are Clip's, whose bounds may be missing. */
#define LEAST(operands) ((operands) == 2 ? 2 : 1)

const expr_op expr_ops[] = {
    {"Identity", 1, 1},
#define ENTRY_REAL(name, operands) {#name, LEAST(operands), operands},
#define ENTRY_NUMBER ENTRY_REAL
#define ENTRY_INT(...)
#define ENTRY_TEST ENTRY_INT
#define ENTRY_TEST_REAL ENTRY_INT
#define ENTRY_LOGIC ENTRY_INT
#define SCALAR(name, kind, operands, ...) ENTRY_##kind(name, operands)
#include "operators/all.def"
};

int32_t expr_find(const char *name) {
  for (int32_t i = 0; i < EXPR_OP_COUNT; i++) {
    if (strcmp(expr_ops[i].name, name) == 0) return i;
  }
  return -1;
}

/* ---------------------------------------------------------------- putting together */

bool expr_number(expr *e, float number, uint8_t *ref) {
  uint32_t i = 0;
  while (i < e->n_numbers && memcmp(&e->numbers[i], &number, sizeof number) != 0) i++; /* -0 is not 0 */
  if (i == EXPR_NUMBERS) return false;
  if (i == e->n_numbers) e->numbers[e->n_numbers++] = number;
  *ref = (uint8_t)(EXPR_OF_NUMBER + i);
  return true;
}

static bool add_step(expr *e, int32_t op, const uint8_t *args, uint32_t n_args, const float *params, uint8_t *ref) {
  if (e->n_steps == EXPR_STEPS) return false;
  expr_step *step = &e->steps[e->n_steps];
  const scalar_attributes *a = scalar_attributes_of(expr_ops[op].name);
  *step = (expr_step){.op = (uint8_t)op, .n_args = (uint8_t)n_args, .params = {(float)a->of_alpha, (float)a->of_beta}};
  memcpy(step->args, args, n_args);
  if (params != NULL) memcpy(step->params, params, sizeof step->params);
  *ref = (uint8_t)(EXPR_OF_STEP + e->n_steps++);
  return true;
}

bool expr_add(expr *e, int32_t op, const uint8_t *args, uint32_t n_args, const float *params, uint8_t *ref) {
  uint8_t now[EXPR_ARGS] = {args[0], 0, 0};
  if (expr_ops[op].most == EXPR_ARGS) {
    for (uint32_t k = 1; k < EXPR_ARGS; k++) {
      now[k] = k < n_args ? args[k] : 0;
      if (k >= n_args && !expr_number(e, k == 1 ? -INFINITY : INFINITY, &now[k])) return false;
    }
    return add_step(e, op, now, EXPR_ARGS, NULL, ref);
  }
  if (expr_ops[op].most != UINT8_MAX && op != EXPR_Identity) return add_step(e, op, args, n_args, params, ref);
  *ref = args[0];
  for (uint32_t k = 1; k < n_args; k++) {
    now[0] = *ref;
    now[1] = args[k];
    if (!add_step(e, op, now, 2, NULL, ref)) return false;
  }
  return true;
}

bool expr_finish(expr *e, uint8_t ref) {
  if (e->n_steps > 0 && ref == EXPR_OF_STEP + e->n_steps - 1) return true;
  return add_step(e, EXPR_Identity, &ref, 1, NULL, &ref);
}

/* ---------------------------------------------------------------- reading */

typedef struct reader {
  const char *text, *at;
  expr *e;
  uint32_t used; /* bit k: input k */
  heddle_error *err;
} reader;

P_PRINTF(4, 5)
static heddle_status wrong(const reader *r, const char *where, heddle_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  p_vfail(r->err, status, 0, format, args);
  va_end(args);
  p_prefix(r->err, "character %u: ", (unsigned)(where - r->text) + 1);
  return status;
}

static heddle_status no_room(const reader *r, const char *where) {
  return wrong(r, where, HEDDLE_ELIMIT, "an expression has at most %d steps and %d different numbers", EXPR_STEPS,
               EXPR_NUMBERS);
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The next character that is no space. */
static char peek(reader *r) {
  while (*r->at == ' ') r->at++;
  return *r->at;
}

static heddle_status expect(reader *r, char c) {
  if (peek(r) != c) return wrong(r, r->at, HEDDLE_EFORMAT, "expected '%c'", c);
  r->at++;
  return HEDDLE_OK;
}

static const char *digits(const char *at) {
  while (is_digit(*at)) at++;
  return at;
}

/* Behind the digits of a number without inf and nan; NULL where there is none. */
static const char *number_end(const char *at) {
  const char *whole = at + (*at == '-'), *end = digits(whole);
  if (end == whole) return NULL;
  if (*end == '.') {
    const char *part = end + 1;
    end = digits(part);
    if (end == part) return NULL;
  }
  if (*end == 'e' || *end == 'E') {
    const char *power = end + 1 + (end[1] == '-' || end[1] == '+');
    end = digits(power);
    if (end == power) return NULL;
  }
  return end;
}

static heddle_status read_number(reader *r, float *out) {
  char text[64], point[16];
  const char *start = r->at, *end = number_end(start);
  const bool minus = *start == '-';
  if (strncmp(start + minus, "inf", 3) == 0 || strncmp(start, "nan", 3) == 0) {
    *out = start[0] == 'n' ? NAN : minus ? -INFINITY : INFINITY;
    end = start + minus + 3;
  }
  if (end == NULL || is_letter(*end) || *end == '_' || *end == '.' || is_digit(*end))
    return wrong(r, start, HEDDLE_EFORMAT, "expected a number such as 0.5, -1, 2e-3, inf or nan");
  r->at = end;
  if (!is_digit(end[-1])) return HEDDLE_OK;
  if (end - start > 40) return wrong(r, start, HEDDLE_ELIMIT, "a number has at most 40 characters");
  /* strtof wants the locale's point, and printf has it. */
  snprintf(point, sizeof point, "%.1f", 0.5);
  const size_t length = (size_t)(end - start), before = strcspn(start, "."), width = strlen(point) - 2;
  if (before < length) {
    snprintf(text, sizeof text, "%.*s%.*s%.*s", (int)before, start, (int)width, point + 1, (int)(length - before - 1),
             start + before + 1);
  } else {
    snprintf(text, sizeof text, "%.*s", (int)length, start);
  }
  *out = strtof(text, NULL);
  return isinf(*out) ? wrong(r, start, HEDDLE_EFORMAT, "the number is too large for float32") : HEDDLE_OK;
}

/* A word into out; empty where there is none, or it is too long. */
static void read_word(reader *r, char out[32]) {
  const char *start = r->at;
  while (is_letter(*r->at) || (r->at > start && (is_digit(*r->at) || *r->at == '_'))) r->at++;
  const size_t length = (size_t)(r->at - start);
  if (length < 32) memcpy(out, start, length);
  out[length < 32 ? length : 0] = '\0';
}

/* A value that no variant has is the operator's own where it is none or 0. */
static heddle_status read_attribute(reader *r, int32_t *op, const char *name, const char *where, float params[2]) {
  const char *own = expr_ops[*op].name;
  const scalar_attributes *a = scalar_attributes_of(own);
  char word[32];
  r->at++; /* the '=' */
  peek(r);
  if (strcmp(name, "none") != 0 && strcmp(name, a->alpha) == 0) return read_number(r, &params[0]);
  if (strcmp(name, "none") != 0 && strcmp(name, a->beta) == 0) return read_number(r, &params[1]);
  if (!scalar_has_variants(own, name)) return wrong(r, where, HEDDLE_EFORMAT, "%s has no attribute '%s'", own, name);
  const char *value = r->at;
  if (is_digit(*value)) snprintf(word, sizeof word, "%c", *r->at++);
  else read_word(r, word);
  const char *variant = scalar_variant(own, name, word);
  if (variant != NULL) *op = expr_find(variant);
  else if (strcmp(word, "none") != 0 && strcmp(word, "0") != 0)
    return wrong(r, value, HEDDLE_EFORMAT, "'%s' is no value of %s that is known", word, name);
  return HEDDLE_OK;
}

static heddle_status read_value(reader *r, uint32_t depth, uint8_t *ref);

/* An operator's operands and attributes, and the ')'. Operands of Min and Max go into steps as they come. */
static heddle_status read_call(reader *r, int32_t op, const char *start, uint32_t depth, uint8_t *ref) {
  const expr_op *known = &expr_ops[op];
  uint8_t args[EXPR_ARGS] = {0};
  uint32_t count = 0;
  bool named = false;
  const scalar_attributes *defaults = scalar_attributes_of(known->name);
  float params[2] = {(float)defaults->of_alpha, (float)defaults->of_beta};
  if (depth == EXPR_DEPTH) return wrong(r, start, HEDDLE_ELIMIT, "calls lie %d deep at most", EXPR_DEPTH);
  heddle_status s = expect(r, '(');
  for (bool more = true; more && s == HEDDLE_OK;) {
    char word[32] = "";
    peek(r);
    const char *where = r->at;
    if (is_letter(*where)) read_word(r, word);
    if (word[0] != '\0' && peek(r) == '=') {
      named = true;
      s = read_attribute(r, &op, word, where, params);
    } else {
      r->at = where;
      if (named) return wrong(r, where, HEDDLE_EFORMAT, "operands come before attributes");
      if (count == known->most)
        return wrong(r, where, HEDDLE_EFORMAT, "%s has at most %u operands", known->name, count);
      uint8_t *arg = &args[count < 2 || known->most == EXPR_ARGS ? count : 1];
      s = read_value(r, depth + 1, arg);
      if (s == HEDDLE_OK && known->most == EXPR_ARGS && count > 0 && *arg >= EXPR_OF_STEP)
        return wrong(r, where, HEDDLE_EFORMAT, "the bounds of Clip are numbers or inputs");
      count++;
      if (s == HEDDLE_OK && known->most == UINT8_MAX && count >= 2 && !expr_add(r->e, op, args, 2, NULL, &args[0]))
        return no_room(r, where);
    }
    more = s == HEDDLE_OK && peek(r) == ',';
    if (more) r->at++;
  }
  if (s == HEDDLE_OK) s = expect(r, ')');
  if (s != HEDDLE_OK) return s;
  if (count < known->least) return wrong(r, start, HEDDLE_EFORMAT, "%s needs %u operands", known->name, known->least);
  if (known->most == UINT8_MAX) count = 1;
  return expr_add(r->e, op, args, count, params, ref) ? HEDDLE_OK : no_room(r, start);
}

static heddle_status read_value(reader *r, uint32_t depth, uint8_t *ref) {
  char word[32];
  const char c = peek(r), *start = r->at;
  const bool special = strncmp(start, "inf", 3) == 0 || strncmp(start, "nan", 3) == 0;
  if (is_digit(c) || c == '-' || special) {
    float number = 0;
    heddle_status s = read_number(r, &number);
    if (s != HEDDLE_OK) return s;
    return expr_number(r->e, number, ref) ? HEDDLE_OK : no_room(r, start);
  }
  if (!is_letter(c)) return wrong(r, start, HEDDLE_EFORMAT, "expected an operator, an input or a number");
  read_word(r, word);
  if (word[0] == 'x' && is_digit(word[1])) {
    if (word[2] != '\0' || (uint32_t)(word[1] - '0') >= r->e->n_inputs)
      return wrong(r, start, HEDDLE_EFORMAT, "there is no input '%s' among %u", word, r->e->n_inputs);
    *ref = (uint8_t)(word[1] - '0');
    r->used |= UINT32_C(1) << *ref;
    return HEDDLE_OK;
  }
  const int32_t op = strchr(word, '_') == NULL ? expr_find(word) : -1;
  if (op < 0) return wrong(r, start, HEDDLE_EFORMAT, "there is no operator '%s' in expressions", word);
  return read_call(r, op, start, depth, ref);
}

heddle_status expr_parse(const char *text, uint32_t n_inputs, expr *out, heddle_error *err) {
  reader r = {text, text, out, 0, err};
  uint8_t ref = 0;
  memset(out, 0, sizeof *out);
  if (n_inputs > EXPR_INPUTS) return wrong(&r, text, HEDDLE_ELIMIT, "an expression has at most %d inputs", EXPR_INPUTS);
  out->n_inputs = n_inputs;
  size_t length = 0;
  while (length <= EXPR_BYTES && text[length] != '\0') length++;
  if (length > EXPR_BYTES) return wrong(&r, text, HEDDLE_ELIMIT, "an expression has at most %d characters", EXPR_BYTES);
  heddle_status s = read_value(&r, 0, &ref);
  if (s == HEDDLE_OK && peek(&r) != '\0') s = wrong(&r, r.at, HEDDLE_EFORMAT, "expected the end");
  for (uint32_t k = 0; k < n_inputs && s == HEDDLE_OK; k++) {
    if ((r.used >> k & 1) == 0) s = wrong(&r, r.at, HEDDLE_EFORMAT, "input x%u is not used", k);
  }
  if (s == HEDDLE_OK && !expr_finish(out, ref)) s = no_room(&r, text);
  return s;
}
