/* From a line of a table to a case with values in its operands, and to the region that the plugin is asked about. */
#include "operators/operators.h"
#include "op_case.h"

#include "plugins/common/more/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLES = 7 };

static const op_table *table_at(int t) {
  const op_table *const tables[TABLES] = {op_scalar(), &op_elementwise, &op_contract, &op_moves,
                                          &op_rows,    &op_rare,        &op_ranks};
  return tables[t];
}

uint32_t op_line_count(void) {
  uint32_t n = 0;
  for (int t = 0; t < TABLES; t++) n += table_at(t)->count;
  return n;
}

const op_line *op_line_at(uint32_t i) {
  for (int t = 0; t < TABLES; t++) {
    if (i < table_at(t)->count) return &table_at(t)->lines[i];
    i -= table_at(t)->count;
  }
  return NULL;
}

/* ---------------------------------------------------------------- types */

typedef struct type_row {
  char letter;
  uint8_t code, bits, reserved;
  int number;
  const char *name;
} type_row;

static const type_row types[] = {
    {'f', HEDDLE_DTYPE_FLOAT, 32, 0, REF_TYPE_F32, "float32"},
    {'d', HEDDLE_DTYPE_FLOAT, 64, 0, REF_TYPE_F64, "float64"},
    {'h', HEDDLE_DTYPE_FLOAT, 16, 0, MORE_TYPE_F16, "float16"},
    {'b', HEDDLE_DTYPE_BFLOAT, 16, 0, MORE_TYPE_BF16, "bfloat16"},
    {'a', HEDDLE_DTYPE_INT, 8, 0, REF_TYPE_I8, "int8"},
    {'s', HEDDLE_DTYPE_INT, 16, 0, REF_TYPE_I16, "int16"},
    {'i', HEDDLE_DTYPE_INT, 32, 0, REF_TYPE_I32, "int32"},
    {'l', HEDDLE_DTYPE_INT, 64, 0, REF_TYPE_I64, "int64"},
    {'A', HEDDLE_DTYPE_UINT, 8, 0, REF_TYPE_U8, "uint8"},
    {'S', HEDDLE_DTYPE_UINT, 16, 0, REF_TYPE_U16, "uint16"},
    {'I', HEDDLE_DTYPE_UINT, 32, 0, REF_TYPE_U32, "uint32"},
    {'L', HEDDLE_DTYPE_UINT, 64, 0, REF_TYPE_U64, "uint64"},
    {'B', HEDDLE_DTYPE_BOOL, 8, 0, REF_TYPE_BOOL, "bool"},
};

static const type_row *type_of(char letter) {
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (types[i].letter == letter) return &types[i];
  return NULL;
}

heddle_dtype op_dtype(char type) {
  const type_row *t = type_of(type);
  return (heddle_dtype){t->code, t->bits, 1};
}

uint32_t op_type_bytes(char type) {
  return type_of(type)->bits / 8U;
}

int op_number_type(char type) {
  return type_of(type)->number;
}

bool op_type_is_real(char type) {
  return strchr("fdhb", type) != NULL;
}

void op_text(const op_case *c, char *out, size_t bytes) {
  size_t at =
      (size_t)snprintf(out, bytes, "%s%s (opset %u)", c->line->op, c->line->opset == 0 ? " of domain heddle" : "",
                       c->line->opset == 0 ? 13U : c->line->opset);
  for (uint32_t i = 0; i < c->n_in && at < bytes; i++) {
    const op_operand *o = &c->in[i];
    at += (size_t)snprintf(out + at, bytes - at, " %s", o->here ? type_of(o->type)->name : "-");
    for (int32_t d = 0; o->here && d < o->ndim && at < bytes; d++)
      at += (size_t)snprintf(out + at, bytes - at, "%s%lld", d == 0 ? "[" : ",", (long long)o->shape[d]);
    if (o->here && at < bytes)
      at += (size_t)snprintf(out + at, bytes - at, "%s%s", o->ndim > 0 ? "]" : "[]", o->known ? "!" : "");
  }
  const char *attrs = strchr(c->line->text, ';');
  if (attrs != NULL && at < bytes) snprintf(out + at, bytes - at, " %s", attrs);
}

/* ---------------------------------------------------------------- reading */

static double number_at(const char **at) {
  char *end;
  const double x = strtod(*at, &end);
  *at = end;
  return x;
}

static void read_constant(op_operand *o, const char *at) {
  double x[64];
  o->known = true;
  if (*at == '#') o->ndim = 0;
  else o->ndim = 1;
  uint64_t n = 0;
  const bool scalar = *at++ == '#';
  while (*at != '\0' && n < 64) {
    x[n++] = number_at(&at);
    if (*at == ',') at++;
    else break;
  }
  if (!scalar) o->shape[0] = (int64_t)n;
  o->low = NAN; /* its values are given */
  o->count = n;
  o->x = malloc((n + 1) * sizeof *o->x);
  if (o->x != NULL) memcpy(o->x, x, n * sizeof *x);
}

static void read_operand(kit *k, op_case *c, op_operand *o, char *word) {
  if (strcmp(word, "-") == 0) return;
  const char *at = word + 1;
  o->here = true;
  o->follows = word[0] == 'T';
  o->type = o->follows ? c->type : word[0];
  if (type_of(o->type) == NULL)
    kit_fail(k, "the kit's line '%s' of %s is wrong at '%s'", c->line->text, c->line->op, word);
  const bool sign = strchr("asil", o->type) != NULL;
  o->low = op_type_is_real(o->type) ? -2 : sign ? -6 : 0;
  o->high = op_type_is_real(o->type) ? 2 : o->type == 'B' ? 1 : sign ? 6 : 12;
  if (*at == '=' || *at == '#') {
    read_constant(o, at);
    return;
  }
  if (*at != '[') kit_fail(k, "the kit's line '%s' of %s is wrong at '%s'", c->line->text, c->line->op, word);
  for (at++; *at != ']' && *at != '\0' && o->ndim < OP_DIMS;) {
    o->shape[o->ndim++] = (int64_t)number_at(&at);
    if (*at == ',') at++;
    else if (*at != ']') kit_fail(k, "the kit's line '%s' of %s is wrong at '%s'", c->line->text, c->line->op, word);
  }
  if (*at == ']') at++;
  for (; *at != '\0'; at++) {
    if (*at == '!') o->known = true;
    if (*at == '?') o->odd = op_type_is_real(o->type);
    if (*at != '{') continue;
    at++;
    o->low = number_at(&at);
    at++;
    o->high = number_at(&at);
  }
}

static void read_attr(kit *k, op_case *c, char *word, char *rest) {
  if (c->n_attrs == OP_ATTRS) kit_fail(k, "the kit's line '%s' has too many attributes", c->line->text);
  op_attr *a = &c->attrs[c->n_attrs++];
  char *sign = strpbrk(word, "=:~'\"");
  if (sign == NULL) kit_fail(k, "the kit's line '%s' of %s is wrong at '%s'", c->line->text, c->line->op, word);
  const char kind = *sign;
  const bool row = kind == ':' || (kind == '~' && sign[1] == '~');
  const char *at = sign + (kind == '~' && row ? 2 : 1);
  (void)rest;
  *sign = '\0';
  a->name = word;
  if (kind == '\'' || kind == '"') {
    a->kind = HEDDLE_ATTR_STRING;
    a->text = at;
    a->count = strlen(at);
    return;
  }
  a->kind = kind == '~' ? (row ? HEDDLE_ATTR_FLOATS : HEDDLE_ATTR_FLOAT) : row ? HEDDLE_ATTR_INTS : HEDDLE_ATTR_INT;
  while (*at != '\0' && a->count < OP_INTS) {
    a->floats[a->count] = number_at(&at);
    a->ints[a->count] = (int64_t)a->floats[a->count];
    a->count++;
    if (*at == ',') at++;
    else break;
  }
}

static void set_value(op_operand *o, uint64_t i, double x) {
  const int type = op_number_type(o->type);
  uint64_t place;
  more_store(type, &place, 0, x);
  memcpy(o->raw + i * op_type_bytes(o->type), &place, op_type_bytes(o->type));
  o->x[i] = more_load(type, &place, 0);
}

static void fill(op_operand *o, uint32_t *state) {
  static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -0.0};
  const bool whole = !op_type_is_real(o->type);
  for (uint64_t i = 0; i < o->count; i++) {
    *state = *state * 1664525U + 1013904223U;
    const double part = (double)(*state >> 8) / 0x1p24;
    double x = whole ? o->low + floor(part * (o->high - o->low + 1)) : o->low + part * (o->high - o->low);
    if (o->odd && i % 5 == 1) x = odd[i / 5 % 4];
    set_value(o, i, x);
  }
}

static void make_values(op_operand *o, uint32_t *state, int shift) {
  const bool given = isnan(o->low);
  o->count = 1;
  for (int32_t d = 0; d < o->ndim; d++) o->count *= (uint64_t)o->shape[d];
  o->bytes = o->count * op_type_bytes(o->type);
  if (o->x == NULL) o->x = calloc(o->count + 1, sizeof *o->x);
  o->block = malloc(o->bytes + 16);
  if (o->x == NULL || o->block == NULL) return;
  o->raw = o->block + shift;
  if (!given) fill(o, state);
  for (uint64_t i = 0; given && i < o->count; i++) set_value(o, i, o->x[i]);
}

void op_read(kit *k, op_case *c, const op_line *line, char type, uint32_t known, uint32_t seed) {
  uint32_t state = seed * 2654435761U + 12345U;
  int part = 0; /* operands, results, attributes */
  memset(c, 0, sizeof *c);
  c->line = line;
  c->type = type;
  if (strlen(line->text) >= sizeof c->words) kit_fail(k, "the kit's line '%s' is too long", line->text);
  memcpy(c->words, line->text, strlen(line->text) + 1);
  for (char *at = c->words, *next; at != NULL && *at != '\0'; at = next) {
    const size_t length = strcspn(at, " ");
    const char *quote = part == 2 ? memchr(at, '"', length) : NULL;
    next = at[length] != '\0' && quote == NULL ? at + length + 1 : NULL;
    if (next != NULL) at[length] = '\0';
    if (*at == '\0') continue;
    if (strcmp(at, ">") == 0) part = 1;
    else if (strcmp(at, ";") == 0) part = 2;
    else if (part == 0 && c->n_in < OP_IN) read_operand(k, c, &c->in[c->n_in++], at);
    else if (part == 1 && c->n_out < OP_OUT) read_operand(k, c, &c->out[c->n_out++], at);
    else if (part == 2) read_attr(k, c, at, next);
    else kit_fail(k, "the kit's line '%s' of %s has too many operands", line->text, line->op);
  }
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (!c->in[i].here) continue;
    if (known != OP_RUN && i > 0) c->in[i].known = true;
    make_values(&c->in[i], &state, known == OP_KNOWN_EVEN ? 0 : 1);
    if (c->in[i].raw == NULL) kit_fail(k, "the kit has no memory for %s", line->text);
  }
  for (uint32_t i = 0; i < c->n_out; i++) {
    op_operand *o = &c->out[i];
    o->count = 1;
    for (int32_t d = 0; d < o->ndim; d++) o->count *= (uint64_t)o->shape[d];
    if (o->here) o->bytes = o->count * op_type_bytes(o->type);
  }
}

void op_values(op_case *c, uint32_t seed) {
  uint32_t state = seed * 2654435761U + 777U;
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->in[i].here && !c->in[i].known) fill(&c->in[i], &state);
}

void op_constants(op_case *c, uint32_t seed) {
  uint32_t state = seed * 2654435761U + 555U;
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->in[i].here && c->in[i].known && !isnan(c->in[i].low)) fill(&c->in[i], &state);
}

void op_round_values(op_operand *o, const double *x) {
  for (uint64_t i = 0; i < o->count; i++) set_value(o, i, x[i]);
}

void op_set_values(op_operand *o, const double *x) {
  op_round_values(o, x);
  if (op_type_is_real(o->type)) memcpy(o->x, x, o->count * sizeof *x);
}

void op_free(op_case *c) {
  for (uint32_t i = 0; i < OP_IN; i++) {
    free(c->in[i].x);
    free(c->in[i].block);
    c->in[i].x = NULL;
    c->in[i].raw = c->in[i].block = NULL;
  }
}

/* ---------------------------------------------------------------- regions */

static heddle_pvalue value_of(const op_operand *o, char reference) {
  const char type = reference != '\0' && o->follows && op_type_is_real(o->type) ? reference : o->type;
  heddle_pvalue v = {.struct_size = sizeof v, .dtype = op_dtype(type), .shape = o->shape, .ndim = o->ndim};
  v.open_dims = o->open_dims;
  if (o->known && type == o->type) {
    v.data = o->raw;
    v.data_bytes = o->bytes;
  }
  return v;
}

void op_describe(const op_case *c, char reference, op_region *out) {
  uint32_t n = 0;
  memset(out, 0, sizeof *out);
  out->region = (heddle_pregion){.struct_size = sizeof out->region, .flags = c->flags};
  out->node = (heddle_pnode){.struct_size = sizeof out->node, .op = c->line->op, .name = "kit_node"};
  out->node.opset = c->line->opset != 0 ? c->line->opset : 13;
  out->node.domain = c->line->opset != 0 ? "" : "heddle";
  const heddle__version *version = heddle__version_find(c->line->opset == 0, c->line->op, out->node.opset);
  out->node.since_version = version != NULL ? version->opset_first : 0;
  for (uint32_t i = 0; i < c->n_in; i++) {
    out->node_in[i] = -1;
    if (!c->in[i].here) continue;
    out->from[out->region.n_inputs] = i;
    out->in[out->region.n_inputs++] = out->node_in[i] = (int32_t)n;
    out->values[n++] = value_of(&c->in[i], reference);
  }
  for (uint32_t i = 0; i < c->n_out; i++) {
    out->node_out[i] = -1;
    if (!c->out[i].here) continue;
    out->to[out->region.n_outputs] = i;
    out->out[out->region.n_outputs++] = out->node_out[i] = (int32_t)n;
    out->values[n++] = value_of(&c->out[i], reference);
  }
  for (uint32_t i = 0; i < c->n_attrs; i++) {
    const op_attr *a = &c->attrs[i];
    const void *data = a->kind == HEDDLE_ATTR_STRING ? a->text : (const void *)a->ints;
    if (a->kind == HEDDLE_ATTR_FLOAT || a->kind == HEDDLE_ATTR_FLOATS) data = a->floats;
    out->attrs[i] = (heddle_pattr){sizeof out->attrs[i], a->kind, a->name, data, a->count};
  }
  out->node.attrs = (heddle_parray){out->attrs, c->n_attrs, sizeof out->attrs[0]};
  out->node.inputs = out->node_in;
  out->node.outputs = out->node_out;
  out->node.n_inputs = c->n_in;
  out->node.n_outputs = c->n_out;
  out->region.nodes = (heddle_parray){&out->node, 1, sizeof out->node};
  out->region.values = (heddle_parray){out->values, n, sizeof out->values[0]};
  out->region.inputs = out->in;
  out->region.outputs = out->out;
}
