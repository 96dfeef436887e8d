/* The call of splice.h. A module is a header and a row of instructions, each beginning with its length and number; names
 * come first, then decorations, types and constants, then functions, whose calls may come before what they call. So the
 * pieces are found by one walk, and new numbers (ids) are counted on from the header's bound. */
#include "splice.h"

#include "plugins/common/perror.h"

/* Of SPIR-V's specification. */
enum {
  MAGIC = 0x07230203,
  HEADER_WORDS = 5,
  BOUND_AT = 3,
  OP_NAME = 5,
  OP_TYPE_FLOAT = 22,
  OP_CONSTANT = 43,
  OP_FUNCTION = 54,
  OP_FUNCTION_PARAMETER = 55,
  OP_FUNCTION_END = 56,
  OP_FUNCTION_CALL = 57,
  OP_LABEL = 248,
  OP_RETURN_VALUE = 254,
};

enum {
  OPERANDS = 5, /* of an operator's function: a, b, c, alpha, beta */
  STEP_WORDS = 4 + OPERANDS,
  CONSTANT_WORDS = 4,
  RETURN_WORDS = 2,
};

/* What the walk finds: ids, 0 where there is none yet, and places in words. inputs: the chain's parameters, n_inputs of
 * them so far; inside: the walk is in the chain's function. */
typedef struct found {
  uint32_t ops[EXPR_OP_COUNT], inputs[EXPR_INPUTS];
  uint32_t chain, type_float, n_inputs;
  bool inside;
  uint64_t functions_at, body_at, end_at;
} found;

/* The module being written; its length was counted before. */
typedef struct module {
  const uint32_t *words;
  uint64_t count;
  found f;
  uint32_t *out;
  uint64_t used;
  uint32_t bound;
} module;

/* ---------------------------------------------------------------- the template */

/* A function's name goes on with the types of its operands. */
static bool is_name(const char *text, const char *name) {
  const size_t length = strlen(name);
  return strncmp(text, name, length) == 0 && (text[length] == '(' || text[length] == '\0');
}

static void take_name(found *f, uint32_t id, const char *text) {
  if (is_name(text, "chain")) f->chain = id;
  if (strncmp(text, "f_", 2) != 0) return;
  for (uint32_t op = 0; op < EXPR_OP_COUNT; op++) {
    if (is_name(text + 2, expr_ops[op].name)) f->ops[op] = id;
  }
}

/* An instruction of count words at w. */
static void take(module *m, uint64_t at, uint32_t op, uint32_t count) {
  const uint32_t *w = m->words + at;
  found *f = &m->f;
  if (op == OP_NAME && count >= 3) {
    /* Terminated within its words, whatever they hold. */
    char text[64];
    const size_t bytes = (count - 2) * sizeof *w;
    const size_t room = bytes < sizeof text - 1 ? bytes : sizeof text - 1;
    memcpy(text, w + 2, room);
    text[room] = '\0';
    take_name(f, w[1], text);
  } else if (op == OP_TYPE_FLOAT && count >= 3 && w[2] == 32) {
    f->type_float = w[1];
  } else if (op == OP_FUNCTION && count == 5) {
    if (f->functions_at == 0) f->functions_at = at;
    f->inside = w[2] == f->chain;
  } else if (op == OP_FUNCTION_PARAMETER && count == 3 && f->inside && f->n_inputs < EXPR_INPUTS) {
    f->inputs[f->n_inputs++] = w[2];
  } else if (op == OP_LABEL && f->inside && f->body_at == 0) {
    f->body_at = at + count;
  } else if (op == OP_FUNCTION_END && f->inside && f->end_at == 0) {
    f->end_at = at;
  }
}

static bool read_template(module *m) {
  found *f = &m->f;
  if (m->count < HEADER_WORDS || m->words[0] != MAGIC) return false;
  for (uint64_t at = HEADER_WORDS; at < m->count;) {
    const uint32_t count = m->words[at] >> 16, op = m->words[at] & 0xffff;
    if (count == 0 || count > m->count - at) return false;
    take(m, at, op, count);
    at += count;
  }
  return f->chain != 0 && f->type_float != 0 && f->n_inputs == EXPR_INPUTS && f->body_at != 0 &&
         f->end_at > f->body_at && m->words[BOUND_AT] < UINT32_MAX / 2;
}

/* ---------------------------------------------------------------- the chain */

static void put(module *m, uint32_t word) {
  m->out[m->used++] = word;
}

static void put_range(module *m, uint64_t from, uint64_t to) {
  memcpy(m->out + m->used, m->words + from, (size_t)(to - from) * sizeof *m->out);
  m->used += to - from;
}

static uint32_t put_constant(module *m, float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  put(m, CONSTANT_WORDS << 16 | OP_CONSTANT);
  put(m, m->f.type_float);
  put(m, m->bound);
  put(m, bits);
  return m->bound++;
}

static uint32_t put_call(module *m, uint32_t function, const uint32_t args[OPERANDS]) {
  put(m, STEP_WORDS << 16 | OP_FUNCTION_CALL);
  put(m, m->f.type_float);
  put(m, m->bound);
  put(m, function);
  for (uint32_t k = 0; k < OPERANDS; k++) put(m, args[k]);
  return m->bound++;
}

/* ids: of the expression's inputs, numbers and steps, as expr.h counts them; params of alpha and beta, a pair a step. */
static void put_body(module *m, const expr *e, uint32_t *ids, const uint32_t *params, uint32_t zero) {
  uint32_t last = zero;
  memcpy(ids, m->f.inputs, sizeof m->f.inputs);
  for (uint32_t i = 0; i < e->n_steps; i++) {
    const expr_step *step = &e->steps[i];
    uint32_t args[OPERANDS] = {zero, zero, zero, params[2 * i], params[2 * i + 1]};
    for (uint32_t k = 0; k < step->n_args; k++) args[k] = ids[step->args[k]];
    last = ids[EXPR_OF_STEP + i] = put_call(m, m->f.ops[step->op], args);
  }
  put(m, RETURN_WORDS << 16 | OP_RETURN_VALUE);
  put(m, last);
}

static bool has_all(const module *m, const expr *e) {
  for (uint32_t i = 0; i < e->n_steps; i++) {
    if (m->f.ops[e->steps[i].op] == 0) return false;
  }
  return true;
}

heddle_status vlk_splice(const heddle_host *host, const uint32_t *words, uint64_t bytes, const expr *program,
                         uint32_t **out, uint64_t *out_bytes, heddle_error *err) {
  module m = {.words = words, .count = bytes / sizeof *words};
  uint32_t ids[EXPR_REFS] = {0}, params[2 * EXPR_STEPS];
  if (!read_template(&m) || !has_all(&m, program))
    return p_fail(err, HEDDLE_EINTERNAL, 0, "the template of chains lacks a function");
  const uint64_t most =
      m.count + (1 + EXPR_NUMBERS + 2 * EXPR_STEPS) * CONSTANT_WORDS + EXPR_STEPS * STEP_WORDS + RETURN_WORDS;
  m.out = host->alloc(host->ctx, most * sizeof *words, _Alignof(uint32_t));
  if (m.out == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for the shader of a chain");
  m.bound = words[BOUND_AT];
  put_range(&m, 0, m.f.functions_at);
  const uint32_t zero = put_constant(&m, 0.0f);
  for (uint32_t i = 0; i < program->n_numbers; i++) ids[EXPR_OF_NUMBER + i] = put_constant(&m, program->numbers[i]);
  for (uint32_t i = 0; i < program->n_steps; i++) {
    const expr_step *step = &program->steps[i];
    for (uint32_t k = 0; k < 2; k++)
      params[2 * i + k] = step->params[k] != 0 ? put_constant(&m, step->params[k]) : zero;
  }
  put_range(&m, m.f.functions_at, m.f.body_at);
  put_body(&m, program, ids, params, zero);
  put_range(&m, m.f.end_at, m.count);
  m.out[BOUND_AT] = m.bound;
  *out = m.out;
  *out_bytes = m.used * sizeof *words;
  return HEDDLE_OK;
}
