/* Lines of the elementwise operators, made from the registry of operators/: each operator with a scalar expression, in the
 * types of its entry, over shapes that broadcast, scalars, no elements, tails of every width, and values that are no
 * numbers; with each variant that an attribute picks, and with attributes that are not the defaults. */
#include "op_case.h"

#include "plugins/common/scalar.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_LINES = 1600, TEXT_BYTES = 96 * 1024 };

static const struct {
  const char *name;
  double low[2], high[2];
} ranges[] = {
#define SCALAR_RANGE(name, least_a, most_a, least_b, most_b) {#name, {least_a, least_b}, {most_a, most_b}},
#include "operators/all.def"
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* Lines while they are made. */
typedef struct maker {
  const char *op;    /* of the registry */
  const char *types; /* letters of all its types */
  uint32_t opset;
  const char *attributes; /* " ; alpha~0.5", "" */
  char range[2][40];      /* of the operands: "{0,1}", "" */
  char result;            /* 'T' or 'B' */
} maker;

static op_line lines[MOST_LINES];
static op_table table = {lines, 0};
static char text[TEXT_BYTES];
static size_t used;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A text that stays; "" where there is no room, which op_read reports as a wrong line of the kit's. */
__attribute__((format(printf, 1, 2))) static const char *keep(const char *format, ...) {
  va_list more;
  va_start(more, format);
  const int n = vsnprintf(text + used, sizeof text - used, format, more);
  va_end(more);
  if (n < 0 || (size_t)n >= sizeof text - used) return "";
  const char *kept = text + used;
  used += (size_t)n + 1;
  return kept;
}

/* A line in those of the types that the operator has; none where it has none of them. */
static void add(const maker *m, const char *types, const char *line) {
  char some[16];
  size_t n = 0;
  for (const char *t = types; *t != '\0' && n + 1 < sizeof some; t++)
    if (strchr(m->types, *t) != NULL) some[n++] = *t;
  some[n] = '\0';
  if (n > 0 && table.count < MOST_LINES) lines[table.count++] = (op_line){m->op, keep("%s", some), line, m->opset};
}

/* The first of the types, for lines that one of them is enough for. */
static const char *first_type(const maker *m) {
  return keep("%c", m->types[0]);
}

static void add_one(const maker *m, const char *types) {
  const char *a = m->range[0];
  const char to = m->result;
  add(m, types, keep("T[3,37]%s > %c[3,37]%s", a, to, m->attributes));
  if (m->attributes[0] != '\0') return;
  add(m, first_type(m), keep("T[]%s > %c[]", a, to));
  add(m, first_type(m), keep("T[2,0] > %c[2,0]", to));
  add(m, first_type(m), keep("T[5,1031]%s > %c[5,1031]", a, to));
  add(m, first_type(m), keep("T[70003]%s > %c[70003]", a, to));
  add(m, first_type(m), keep("T[3,1,5,2,7]%s > %c[3,1,5,2,7]", a, to));
  add(m, "fd", keep("T[23]? > %c[23]", to));
  if (a[0] == '\0' && to == 'T') add(m, "fd", keep("T[7,37]{-120,120} > T[7,37]"));
}

/* Integers that wrap: numbers of the type's whole range, of operators that are defined for all of them. */
static void add_overflow(const maker *m) {
  static const char *const all[] = {"Add", "Sub", "Mul", NULL};
  static const struct {
    const char *type, *range;
  } ranges_of[] = {{"a", "{-128,127}"}, {"A", "{0,255}"}, {"s", "{-32768,32767}"}, {"i", "{-2147483648,2147483647}"}};
  for (size_t i = 0; all[i] != NULL; i++)
    for (size_t t = 0; strcmp(all[i], m->op) == 0 && t < COUNT(ranges_of); t++)
      add(m, ranges_of[t].type, keep("T[3,37]%s T[3,37]%s > T[3,37]", ranges_of[t].range, ranges_of[t].range));
}

static void add_two(const maker *m, const char *types) {
  static const struct {
    const char *a, *b, *to;
  } shapes[] = {{"[3,2,7]", "[2,1]", "[3,2,7]"},
                {"[2,1,5]", "[3,1]", "[2,3,5]"},
                {"[]", "[4]", "[4]"},
                {"[]", "[]", "[]"},
                {"[1]", "[1]", "[1]"},
                {"[0,3]", "[3]", "[0,3]"},
                {"[4,3,1,9]", "[1,3,5,1]", "[4,3,5,9]"},
                {"[7,1029]", "[7,1]", "[7,1029]"},
                {"[2,1,3,1,5]", "[4,1,2,1]", "[2,4,3,2,5]"},
                {"[2,3,1,2,3,1]", "[3,1,4,1,2,1,5]", "[3,2,4,1,2,3,5]"},
                {"[70003]", "[70003]", "[70003]"}};
  const char *a = m->range[0], *b = m->range[1];
  const char to = m->result;
  add(m, types, keep("T[3,37]%s T[3,37]%s > %c[3,37]%s", a, b, to, m->attributes));
  if (m->attributes[0] != '\0') return;
  add_overflow(m);
  add(m, strchr(m->types, 'f') != NULL ? "fiB" : first_type(m), keep("T[5,33]%s T[33]%s > %c[5,33]", a, b, to));
  if (strchr(m->types, 'f') != NULL) add(m, "f", keep("T[23,1]?%s T[23]?%s > %c[23,23]", a, b, to));
  for (size_t i = 0; i < COUNT(shapes); i++)
    add(m, first_type(m), keep("T%s%s T%s%s > %c%s", shapes[i].a, a, shapes[i].b, b, to, shapes[i].to));
}

static void add_lines(const maker *m, uint32_t operands) {
  if (operands == 1) add_one(m, m->types);
  if (operands == 2 || operands == HEDDLE__VARIADIC) add_two(m, m->types);
  if (operands != HEDDLE__VARIADIC) return;
  add(m, "fl", keep("T[3,37] T[37] T[3,1] > %c[3,37]", m->result));
  add(m, "f", keep("T[37] > %c[37]", m->result));
}

/* What holds for the expression of a name: its operands' values, and the type of its result. */
static void describe(maker *m, const char *name, scalar_info info) {
  const bool tests = (info.kinds & (SCALAR_TEST | SCALAR_LOGIC)) != 0;
  m->result = tests ? 'B' : 'T';
  /* Numbers of which some are equal. */
  for (int i = 0; i < 2; i++)
    snprintf(m->range[i], sizeof m->range[i], "%s",
             (info.kinds & SCALAR_TEST) != 0 && info.operands == 2 ? "{0,2}" : "");
  for (size_t r = 0; r < COUNT(ranges); r++)
    for (int i = 0; strcmp(ranges[r].name, name) == 0 && i < 2; i++)
      if (ranges[r].low[i] != -2 || ranges[r].high[i] != 2) /* those of every operand */
        snprintf(m->range[i], sizeof m->range[i], "{%g,%g}", ranges[r].low[i], ranges[r].high[i]);
}

/* One attribute of an expression with a number that is not the default. */
static int attribute_text(char *out, size_t bytes, const char *name, double value) {
  return strcmp(name, "none") == 0 ? 0 : snprintf(out, bytes, " %s~%g", name, 0.6 * value + 0.07);
}

static void add_attributes(maker *m, const char *name, uint32_t operands) {
  const scalar_attributes *a = scalar_attributes_of(name);
  char out[128] = "";
  int n = attribute_text(out, sizeof out, a->alpha, a->of_alpha);
  n += attribute_text(out + n, sizeof out - (size_t)n, a->beta, a->of_beta);
  if (n == 0) return;
  m->attributes = keep(" ;%s", out);
  add_lines(m, operands);
}

static void add_operator(const heddle__operator *op, char *types) {
  const heddle__version *version = NULL;
  for (uint32_t i = 0; i < heddle__version_count; i++) /* the latest */
    if (heddle__versions[i].own == op->own && strcmp(heddle__versions[i].name, op->name) == 0)
      version = &heddle__versions[i];
  const scalar_info info = scalar_find(op->name);
  if (version == NULL) return;
  maker m = {.op = op->name, .types = types, .opset = op->own ? 0 : version->opset_first, .attributes = ""};
  if (info.operands > 0 && (info.operands == version->min_inputs || version->max_inputs == HEDDLE__VARIADIC)) {
    describe(&m, op->name, info);
    add_lines(&m, info.operands);
    add_attributes(&m, op->name, info.operands);
  }
  const scalar_choice *choice;
  for (uint32_t i = 0; (choice = scalar_choice_of(op->name, i)) != NULL; i++) {
    const scalar_info of = scalar_find(choice->variant);
    const bool is_int = heddle__version_attr(version, choice->attribute) == HEDDLE_ATTR_INT;
    describe(&m, choice->variant, of);
    m.attributes = keep(" ; %s%s%s", choice->attribute, is_int ? "=" : "'", choice->value);
    add_lines(&m, of.operands);
  }
}

static void make(void) {
  static const char letters[] = "fdhbasilASILB"; /* in the order of HEDDLE__ELEMENTS */
  static char types[256][16];                    /* of each operator */
  for (uint32_t i = 0; i < heddle__operator_count && i < COUNT(types); i++) {
    const heddle__operator *op = &heddle__operators[i];
    size_t n = 0;
    if ((op->types & HEDDLE__TYPES_BYTES) != 0 || !scalar_known(op->name)) continue;
    for (uint32_t e = 0; e < HEDDLE__ELEMENT_COUNT; e++)
      if ((op->types & (1U << e)) != 0) types[i][n++] = letters[e];
    if (n > 0) add_operator(op, types[i]);
  }
}

const op_table *op_scalar(void) {
  pthread_once(&once, make);
  return &table;
}
