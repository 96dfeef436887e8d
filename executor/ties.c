/* executor/ties.c: reads rules "INPUT:OUTPUT" and ties the inputs of a model to its outputs.
 * A '*' of the first pattern stands for any text, and for the same text, or the end of it, in the second one. */
#include "executor/ties.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/config.h"
#include "core/error.h"
#include "core/parts.h"
#include "graph/declared.h"

enum { MOST_STARS = 2 };

/* Names that exporters give: of transformers (optimum, onnxruntime-genai), and of recurrent and streaming networks. */
static const char *const known_pairs[][2] = {{"past_key_values.*", "present.*"},
                                             {"past_key_values.*", "present_key_values.*"},
                                             {"past_key_values_*", "present_key_values_*"},
                                             {"past.*", "present.*"},
                                             {"past_*", "present_*"},
                                             {"past", "present"}};

/* A rule while it is read. from is where it was said, for messages; NULL: one of those above. */
typedef struct rule {
  char *input, *output; /* patterns */
  const char *text;
  char *const *outputs; /* names of the outputs */
  heddle_model *m;
  heddle_error *err;
} rule;

/* ---- names */

/* What the stars of a pattern stand for. */
typedef struct capture {
  const char *at[MOST_STARS];
  size_t n[MOST_STARS];
  uint32_t count;
} capture;

static uint32_t stars_of(const char *pattern) {
  uint32_t n = 0;
  for (; *pattern != '\0'; pattern++) n += *pattern == '*';
  return n;
}

/* The name of an output: that of its node, and "NAME:INDEX" where the node has several. NULL: memory is out. */
static char *output_name(const heddle_graph *g, uint32_t head) {
  const heddle__node *n = &g->nodes[g->heads[head].node];
  return n->n_outputs == 1 ? heddle__strdup(n->name) : heddle__format("%s:%u", n->name, (unsigned)g->heads[head].index);
}

static uint32_t find_output(const rule *r, const char *name) {
  for (uint32_t i = 0; i < r->m->graph->n_heads; i++)
    if (strcmp(r->outputs[i], name) == 0) return i;
  return HEDDLE__NONE;
}

/* The second pattern with the captured text; NULL: memory is out. */
static char *fill(const char *pattern, const capture *c) {
  size_t room = strlen(pattern) + 1, used = 0;
  uint32_t star = 0;
  for (uint32_t i = 0; i < c->count; i++) room += c->n[i];
  char *out = heddle__alloc(room, 1);
  for (; out != NULL && *pattern != '\0'; pattern++) {
    if (*pattern != '*') {
      out[used++] = *pattern;
      continue;
    }
    if (c->n[star] > 0) memcpy(out + used, c->at[star], c->n[star]);
    used += c->n[star++];
  }
  return out;
}

/* Finds what the stars stand for, so that there is an output of that name; without one the first that fits. */
typedef struct search {
  const rule *rule;
  capture now, first;
  bool fits, no_memory;
  uint32_t output;
} search;

static void match(search *s, const char *pattern, const char *name) {
  while (*pattern != '*' && *pattern != '\0' && *pattern == *name) pattern++, name++;
  if (s->output != HEDDLE__NONE || s->no_memory) return;
  if (*pattern == '\0' && *name == '\0') {
    if (!s->fits) s->first = s->now;
    s->fits = true;
    char *other = fill(s->rule->output, &s->now);
    s->no_memory = other == NULL;
    if (other != NULL) s->output = find_output(s->rule, other);
    heddle__free(other);
    return;
  }
  if (*pattern != '*') return;
  uint32_t star = s->now.count++;
  for (size_t n = 0; n <= strlen(name) && s->output == HEDDLE__NONE; n++) {
    s->now.at[star] = name;
    s->now.n[star] = n;
    match(s, pattern + 1, name + n);
  }
  s->now.count--;
}

/* Whether b is the end of a, and begins with a mark such as '.' or '_'. */
static bool ends_with(const char *a, size_t n, const char *b, size_t m) {
  return m > 0 && n >= m && strchr("._/:-", b[0]) != NULL && memcmp(a + n - m, b, m) == 0;
}

/* past_key_values.0.key and present.0.key by past*:present*: the text of one star is the end of that of the other, from
 * a mark on. Of several outputs that with the longest. */
static uint32_t find_by_end(const rule *r, const capture *c) {
  const char *star = strchr(r->output, '*');
  if (c->count != 1 || star == NULL) return HEDDLE__NONE;
  const size_t before = (size_t)(star - r->output), after = strlen(star + 1);
  uint32_t best = HEDDLE__NONE;
  size_t most = 0;
  for (uint32_t i = 0; i < r->m->graph->n_heads; i++) {
    const char *name = r->outputs[i];
    const size_t length = strlen(name);
    if (length < before + after || memcmp(name, r->output, before) != 0) continue;
    if (strcmp(name + length - after, star + 1) != 0) continue;
    const char *text = name + before;
    const size_t n = length - before - after, shared = n < c->n[0] ? n : c->n[0];
    if (shared <= most || !(ends_with(c->at[0], c->n[0], text, n) || ends_with(text, n, c->at[0], c->n[0]))) continue;
    best = i;
    most = shared;
  }
  return best;
}

/* ---- ties */

/* Whether the graph declares both alike; why not, where it does not. */
static bool is_alike(const heddle_model *m, uint32_t arg, uint32_t output, char *why, size_t size) {
  const heddle_graph *g = m->graph;
  const heddle__type *a = &g->types[heddle__model_arg(m, arg)->first_entry];
  const heddle__type *b = &g->types[heddle__entry_id(g, g->heads[output])];
  char x[200], y[200];
  if (!a->has_dtype || !a->has_shape) {
    snprintf(why, size, "the input has no declared dtype and shape");
    return false;
  }
  if (b->has_dtype && !heddle__dtype_equal(a->dtype, b->dtype)) {
    heddle__dtype_name(a->dtype, x);
    heddle__dtype_name(b->dtype, y);
    snprintf(why, size, "the input is %s, the output %s", x, y);
    return false;
  }
  bool alike = !b->has_shape || a->ndim == b->ndim;
  for (uint32_t d = 0; b->has_shape && alike && d < a->ndim; d++)
    alike = a->dims[d].value < 0 || b->dims[d].value < 0 || a->dims[d].value == b->dims[d].value;
  if (alike) return true;
  heddle__declared_shape(a, x, sizeof x);
  heddle__declared_shape(b, y, sizeof y);
  snprintf(why, size, "the input has shape %s, the output %s", x, y);
  return false;
}

static heddle_status tie(const rule *r, uint32_t arg, uint32_t output) {
  heddle_model *m = r->m;
  const char *in = heddle__model_arg(m, arg)->name, *out = m->graph->nodes[m->graph->heads[output].node].name;
  const heddle__tie *before = heddle__model_tie(m, arg), *other = heddle__model_tied_output(m, output);
  char why[512];
  bool known = r->text == NULL;
  if (before != NULL && before->output == output) return HEDDLE_OK;
  if (before != NULL && known) return HEDDLE_OK;
  if (before != NULL)
    return heddle__fail(r->err, HEDDLE_EINVAL, "%s: state '%s': two outputs are tied to input '%s': '%s' and '%s'",
                        m->graph->source, r->text, in, m->graph->nodes[m->graph->heads[before->output].node].name, out);
  if (other != NULL && known) return HEDDLE_OK;
  if (other != NULL)
    return heddle__fail(r->err, HEDDLE_EINVAL, "%s: state '%s': output '%s' is tied to two inputs: '%s' and '%s'",
                        m->graph->source, r->text, out, heddle__model_arg(m, other->arg)->name, in);
  if (!is_alike(m, arg, output, why, sizeof why)) {
    if (known) return HEDDLE_OK;
    return heddle__fail(r->err, HEDDLE_EINVAL, "%s: state '%s': input '%s' and output '%s' are not alike: %s",
                        m->graph->source, r->text, in, out, why);
  }
  m->ties[m->n_ties++] = (heddle__tie){arg, output};
  return HEDDLE_OK;
}

static heddle_status no_output(const rule *r, uint32_t arg, const search *found) {
  char *name = fill(r->output, &found->first);
  if (name == NULL) return heddle__no_memory(r->err, "a state rule");
  heddle_status s = heddle__fail(r->err, HEDDLE_EINVAL, "%s: state '%s': for input '%s' there is no output '%s'",
                                 r->m->graph->source, r->text, heddle__model_arg(r->m, arg)->name, name);
  heddle__free(name);
  return s;
}

static heddle_status apply(const rule *r) {
  heddle_model *m = r->m;
  bool any = false;
  for (uint32_t i = 0; i < m->graph->n_args; i++) {
    search found = {.rule = r, .output = HEDDLE__NONE};
    match(&found, r->input, heddle__model_arg(m, i)->name);
    if (found.no_memory) return heddle__no_memory(r->err, "a state rule");
    if (found.fits && found.output == HEDDLE__NONE && r->text != NULL) found.output = find_by_end(r, &found.first);
    if (!found.fits || (r->text == NULL && found.output == HEDDLE__NONE)) continue;
    if (m->constants[i] != NULL) {
      if (r->text == NULL || found.first.count > 0) continue; /* a pattern may fit parameters too */
      return heddle__fail(r->err, HEDDLE_EINVAL, "%s: state '%s': input '%s' is a constant of the model",
                          m->graph->source, r->text, heddle__model_arg(m, i)->name);
    }
    any = true;
    heddle_status s = found.output != HEDDLE__NONE ? tie(r, i, found.output) : no_output(r, i, &found);
    if (s != HEDDLE_OK) return s;
  }
  if (any || r->text == NULL) return HEDDLE_OK;
  return heddle__fail(r->err, HEDDLE_EINVAL, "%s: state '%s': no input is called '%s'", m->graph->source, r->text,
                      r->input);
}

/* ---- rules */

static heddle_status apply_known(heddle_model *m, char *const *outputs, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < sizeof known_pairs / sizeof known_pairs[0] && s == HEDDLE_OK; i++) {
    rule r = {(char *)(uintptr_t)known_pairs[i][0], (char *)(uintptr_t)known_pairs[i][1], NULL, outputs, m, err};
    s = apply(&r);
  }
  return s;
}

/* One rule; text is cut in two in place. */
static heddle_status read_rule(heddle_model *m, char *const *outputs, char *text, heddle_error *err) {
  if (strcmp(text, "auto") == 0) return apply_known(m, outputs, err);
  char *copy = heddle__strdup(text);
  if (copy == NULL) return heddle__no_memory(err, "a state rule");
  char *cut = strchr(text, '=');
  if (cut == NULL) cut = strchr(text, ':');
  heddle_status s = HEDDLE_OK;
  if (cut == NULL || cut == text || cut[1] == '\0' || (*cut == ':' && strchr(cut + 1, ':') != NULL))
    s = heddle__fail(err, HEDDLE_EINVAL,
                     "%s: state '%s': a rule is INPUT:OUTPUT, or INPUT=OUTPUT where a name has a ':', or auto",
                     m->graph->source, copy);
  if (s == HEDDLE_OK) {
    *cut = '\0';
    rule r = {text, cut + 1, copy, outputs, m, err};
    if (stars_of(r.input) != stars_of(r.output) || stars_of(r.input) > MOST_STARS)
      s = heddle__fail(err, HEDDLE_EINVAL, "%s: state '%s': both patterns have the same number of '*', at most %d",
                       m->graph->source, copy, (int)MOST_STARS);
    else s = apply(&r);
  }
  heddle__free(copy);
  return s;
}

heddle_status heddle__ties_read(heddle_model *m, const char *text, heddle_error *err) {
  const json_t *own = json_object_get(json_object_get(m->graph->raw, "heddle"), "state");
  if (text == NULL && own != NULL && !json_is_string(own))
    return heddle__fail(err, HEDDLE_EFORMAT, "%s: member \"state\" of \"heddle\" is a string, as the option state",
                        m->graph->source);
  if (text == NULL) text = json_string_value(own);
  if (!HEDDLE_HAS_STATE && text != NULL && !heddle__config_is_off(text))
    return heddle__left_out(err, "state values", "HEDDLE_STATE");
  if (!HEDDLE_HAS_STATE || text == NULL || heddle__config_is_off(text)) {
    m->state = text != NULL ? heddle__strdup("off") : NULL;
    return text == NULL || m->state != NULL ? HEDDLE_OK : heddle__no_memory(err, "a model's options");
  }
  m->state = heddle__strdup(text);
  char *list = heddle__strdup(text);
  const uint32_t n_heads = m->graph->n_heads;
  char **outputs = heddle__alloc(n_heads, sizeof *outputs);
  m->ties = heddle__alloc(m->graph->n_args, sizeof *m->ties);
  heddle_status s = HEDDLE_OK;
  if (m->state == NULL || list == NULL || m->ties == NULL || outputs == NULL)
    s = heddle__no_memory(err, "a model's options");
  for (uint32_t i = 0; i < n_heads && s == HEDDLE_OK; i++)
    if ((outputs[i] = output_name(m->graph, i)) == NULL) s = heddle__no_memory(err, "a model's options");
  for (char *at = list; s == HEDDLE_OK && at != NULL;) {
    char *next = strchr(at, ',');
    if (next != NULL) *next++ = '\0';
    s = read_rule(m, outputs, at, err);
    at = next;
  }
  heddle__free(list);
  for (uint32_t i = 0; outputs != NULL && i < n_heads; i++) heddle__free(outputs[i]);
  heddle__free(outputs);
  if (s == HEDDLE_OK && m->n_ties > 0 && m->in_flight > 1)
    s = heddle__fail(err, HEDDLE_EINVAL,
                     "%s: a model with state values has one run in flight, since each run needs the result of the one "
                     "before; the options ask for %u",
                     m->graph->source, (unsigned)m->in_flight);
  return s;
}
