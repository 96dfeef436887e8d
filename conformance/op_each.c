/* Which lines of the tables a plugin is asked about: see op_each.h. */
#include "op_each.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void op_word(const op_line *line, char out[64]) {
  snprintf(out, 64, "%s%s", line->opset == 0 ? "heddle." : "", line->op);
}

heddle_status op_ask(kit *k, const op_line *line, char type, op_case *c, op_region *r, op_offers *o, uint32_t known) {
  op_read(k, c, line, type, known, 1);
  op_describe(c, '\0', r);
  return op_query(k, r, o);
}

/* Whether an earlier line is of the same operator and was taken. */
static bool given(const bool *taken, uint32_t i) {
  const op_line *line = op_line_at(i);
  for (uint32_t j = 0; j < i; j++)
    if (taken[j] && strcmp(op_line_at(j)->op, line->op) == 0 && (op_line_at(j)->opset == 0) == (line->opset == 0))
      return true;
  return false;
}

void op_words(kit *k, void (*each)(void *sink, const char *word), void *sink) {
  op_case c;
  op_region r;
  op_offers *o = malloc(sizeof *o);
  bool *taken = calloc(op_line_count(), sizeof *taken);
  char word[64];
  const bool can = k->t.has_op && k->t.op.query != NULL && o != NULL && taken != NULL;
  for (uint32_t i = 0; can && i < op_line_count(); i++) {
    const op_line *line = op_line_at(i);
    for (const char *t = line->types; *t != '\0' && !taken[i] && !given(taken, i); t++) {
      const heddle_status s = op_ask(k, line, *t, &c, &r, o, OP_RUN);
      op_free(&c);
      if (s != HEDDLE_OK && s != HEDDLE_ENEEDSOPEN) continue;
      taken[i] = true;
      op_word(line, word);
      each(sink, word);
    }
  }
  free(taken);
  free(o);
}

const op_line *op_line_of(kit *k, uint32_t n) {
  char word[64];
  for (uint32_t i = 0; i < op_line_count(); i++) {
    op_word(op_line_at(i), word);
    if (strcmp(word, k->param) == 0 && n-- == 0) return op_line_at(i);
  }
  return NULL;
}

heddle_pdevice *op_open_if_needed(kit *k) {
  static const op_line probe = {"Add", "f", "f[4] f[4] > f[4]", 14};
  op_case c;
  op_region r;
  op_offers *o;
  if (!k->t.has_op || k->t.op.query == NULL) kit_skip(k, "the plugin has no operators");
  o = malloc(sizeof *o);
  if (o == NULL) kit_fail(k, "the kit has no memory");
  const heddle_status s = op_ask(k, &probe, 'f', &c, &r, o, OP_RUN);
  op_free(&c);
  free(o);
  return s == HEDDLE_ENEEDSOPEN && k->dev == NULL ? kit_open(k, k->index) : NULL;
}
