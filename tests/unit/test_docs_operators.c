/* docs/operators.md says what the plugins' lists say: each of cpu's operators has a row with its types and opsets, and with
 * what the plugin opencl takes of them. On failure the rows as they should be are printed; scripts/operators-table writes
 * them (HEDDLE_OPERATORS_TABLE names the file to write). And the accelerators list every operator in every type, but for a
 * few that have a reason here. */
#include "opencl_host.h"

#include <strings.h>

enum { OPS = 320, TEXT = 256, LINE = 1024 };

typedef struct listed {
  char op[32], types[TEXT];
  uint32_t first, last;
} listed;

typedef struct list {
  listed ops[OPS];
  uint32_t n;
} list;

static heddle_status take(void *sink, const char *domain, const char *op, uint32_t first, uint32_t last,
                          const char *types, heddle_error *err) {
  list *to = sink;
  (void)err;
  if (domain[0] != '\0') return HEDDLE_OK;
  assert_true(to->n < OPS && strlen(op) < 32 && strlen(types) < TEXT);
  listed *l = &to->ops[to->n++];
  snprintf(l->op, sizeof l->op, "%s", op);
  snprintf(l->types, sizeof l->types, "%s", types);
  l->first = first;
  l->last = last;
  return HEDDLE_OK;
}

static const listed *find(const list *in, const char *op) {
  for (uint32_t i = 0; i < in->n; i++) {
    if (strcmp(in->ops[i].op, op) == 0) return &in->ops[i];
  }
  return NULL;
}

/* The words of the document for a list of types. */
static const char *words(const char *types, char buf[TEXT]) {
#define OF_REF "float32,int8,int16,int32,int64,uint8,uint16,uint32"
#define REALS "float32,float64,float16,bfloat16"
#define WHOLES "int8,int16,int32,int64,uint8,uint16,uint32,uint64"
  static const char *const known[][2] = {
      {"any of whole bytes", "bytes"},
      {"float32,float64,int8,int16,int32,int64,uint8,uint16,uint32,uint64,bool", "no halves"},
      {OF_REF ",bool", "common, bool"},
      {OF_REF, "common"},
      {REALS, "floats"},
      {WHOLES, "integers"},
      {REALS "," WHOLES, "numbers"},
      {REALS "," WHOLES ",bool", "all"},
  };
  size_t used = 0;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strcmp(types, known[i][0]) == 0) return known[i][1];
  }
  for (const char *c = types; *c != '\0' && used + 3 < TEXT; c++) {
    buf[used++] = *c;
    if (*c == ',') buf[used++] = ' ';
  }
  buf[used] = '\0';
  return buf;
}

/* The row up to its remarks. */
static void row_of(const listed *cpu, const listed *opencl, char *out) {
  char types[TEXT], own[TEXT];
  const char *here = opencl == NULL ? "no" : strcmp(opencl->types, cpu->types) == 0 ? "yes" : words(opencl->types, own);
  snprintf(out, LINE, "| %s | %s | %u to %u | %s |", cpu->op, words(cpu->types, types), cpu->first, cpu->last, here);
}

static void list_both(list *cpu, list *opencl) {
  fake_device d;
  sim_test t;
  fake_device_open(&d, "cpu");
  assert_int_equal(d.plugin->op->list(d.self, 0, take, cpu, &d.err), HEDDLE_OK);
  fake_device_close(&d);
  opencl_open(&t, 1, NULL);
  OK(&t, t.p->op->list(t.self, 0, take, opencl, &t.err));
  sim_close(&t);
}

static FILE *open_document(void) {
  FILE *f = fopen(HEDDLE_TEST_SOURCE "/docs/operators.md", "r");
  assert_non_null(f);
  return f;
}

/* Whether a line of the document begins a row of ONNX's operators; the table ends where the next heading is. */
static bool is_row(const char *text, char op[32]) {
  return sscanf(text, "| %31[A-Za-z0-9] |", op) == 1 && strcmp(op, "operator") != 0;
}
static bool is_behind_table(const char *text) {
  return strcmp(text, "## Domain heddle\n") == 0;
}

/* The rows of the table that the lists give, in the order of their names, with the remarks that the document has. */
static void write_rows(FILE *to, const list *cpu, const list *opencl) {
  const char *last = "";
  for (uint32_t n = 0; n < cpu->n; n++) {
    const listed *next = NULL;
    char want[LINE], op[32], *text = NULL;
    size_t room = 0;
    for (uint32_t i = 0; i < cpu->n; i++)
      if (strcasecmp(cpu->ops[i].op, last) > 0 && (next == NULL || strcasecmp(cpu->ops[i].op, next->op) < 0))
        next = &cpu->ops[i];
    assert_non_null(next);
    last = next->op;
    row_of(next, find(opencl, last), want);
    fputs(want, to);
    bool has = false;
    FILE *from = open_document();
    while (!has && getline(&text, &room, from) > 0 && !is_behind_table(text)) {
      const char *remarks = text;
      if (!is_row(text, op) || strcmp(op, last) != 0) continue;
      for (int bar = 0; bar < 5 && remarks != NULL; bar++) remarks = strchr(remarks + (bar > 0), '|');
      has = remarks != NULL;
      if (has) fputs(remarks + 1, to);
    }
    if (!has) fputs("  |\n", to);
    free(text);
    fclose(from);
  }
}

/* The document with its table written anew. */
static void write_document(const char *name, const list *cpu, const list *opencl) {
  char *text = NULL, op[32];
  size_t room = 0;
  bool is_written = false, is_behind = false;
  FILE *from = open_document(), *to = fopen(name, "w");
  assert_non_null(to);
  while (getline(&text, &room, from) > 0) {
    is_behind |= is_behind_table(text);
    const bool row = !is_behind && is_row(text, op);
    if (row && !is_written) write_rows(to, cpu, opencl);
    is_written |= row;
    if (!row) fputs(text, to);
  }
  free(text);
  fclose(from);
  assert_int_equal(fclose(to), 0);
}

static void the_document_lists_what_the_plugins_do(void **state) {
  static list cpu, opencl;
  char *text = NULL;
  size_t room = 0;
  uint32_t rows = 0, wrong = 0;
  const char *written = getenv("HEDDLE_OPERATORS_TABLE");
  (void)state;
  list_both(&cpu, &opencl);
  if (written != NULL) {
    write_document(written, &cpu, &opencl);
    return;
  }
  FILE *f = open_document();
  while (getline(&text, &room, f) > 0) {
    char op[32], want[LINE];
    if (is_behind_table(text)) break; /* the table is of ONNX's own */
    if (!is_row(text, op)) continue;
    const listed *l = find(&cpu, op);
    if (l == NULL) fail_msg("docs/operators.md has %s, which cpu does not list", op);
    rows++;
    row_of(l, find(&opencl, op), want);
    if (strncmp(text, want, strlen(want)) == 0) continue;
    if (wrong++ == 0) fprintf(stderr, "docs/operators.md should have, with its remarks behind:\n");
    fprintf(stderr, "%s\n", want);
  }
  free(text);
  fclose(f);
  assert_int_equal(wrong, 0);
  assert_int_equal(rows, cpu.n);
}

/* What no accelerator runs, and why. */
static const char *const not_on_accelerators[][2] = {
    {"Compress", "the shape of its result depends on data"},
    {"NonMaxSuppression", "the shape of its result depends on data"},
    {"NonZero", "the shape of its result depends on data"},
    {"Unique", "the shape of its result depends on data"},
};

static bool is_left_out(const char *op) {
  for (size_t i = 0; i < sizeof not_on_accelerators / sizeof not_on_accelerators[0]; i++) {
    if (strcmp(not_on_accelerators[i][0], op) == 0) return true;
  }
  return false;
}

/* Whether a word stands between the commas of a list. */
static bool has_word(const char *words, const char *word, size_t length) {
  for (const char *at = words; at != NULL && *at != '\0'; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
  }
  return false;
}

/* The types of l, each of which is missing in other (NULL: all are). Returns how many. */
static uint32_t holes(const listed *l, const listed *other) {
  uint32_t n = 0;
  for (const char *at = l->types; at != NULL && *at != '\0'; at = strchr(at, ',')) {
    at += *at == ',';
    const size_t length = strcspn(at, ",");
    if (other != NULL && has_word(other->types, at, length)) continue;
    fprintf(stderr, "no kernel of accelerators: %s of %.*s\n", l->op, (int)length, at);
    n++;
  }
  return n;
}

static void accelerators_list_every_type(void **state) {
  static list cpu, opencl;
  uint32_t n = 0;
  (void)state;
  list_both(&cpu, &opencl);
  assert_true(cpu.n > 150);
  for (uint32_t i = 0; i < cpu.n; i++) {
    const listed *l = &cpu.ops[i], *there = find(&opencl, l->op);
    if (is_left_out(l->op)) assert_null(there); /* else its line here is to go */
    else n += holes(l, there);
  }
  assert_int_equal(n, 0);
}

CASES(CASE(the_document_lists_what_the_plugins_do), CASE(accelerators_list_every_type))
