/* frontends/onnx/words.c: how the reader words what is wrong: errors with the file's name, and the list of all that is not
 * supported, an entry for each kind of problem. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/failure.h"
#include "frontends/onnx/reader.h"

heddle_status heddle__onnx_fail(heddle__onnx_reader *r, heddle_status status, const char *format, ...) {
  char words[900];
  va_list args;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  return heddle__fail(r->err, status, "%s: %s", r->name, words);
}

heddle_status heddle__onnx_no_memory(heddle__onnx_reader *r) {
  if (!r->arena.is_over) return heddle__no_memory(r->err, "a model");
  return heddle__onnx_fail(r, HEDDLE_ELIMIT,
                           "without its weights it takes more than %llu bytes of memory; the limit is an option of the "
                           "reader",
                           (unsigned long long)r->arena.limit);
}

const char *heddle__onnx_show(const char *text, char out[44]) {
  size_t n = text != NULL ? strlen(text) : 0;
  if (n > 40) snprintf(out, 44, "%.20s...%s", text, text + n - 17);
  else snprintf(out, 44, "%s", n > 0 ? text : "");
  for (char *c = out; *c != '\0'; c++)
    if ((unsigned char)*c < ' ' || (unsigned char)*c >= 127) *c = '?';
  return out;
}

const char *heddle__onnx_node_name(const Onnx__NodeProto *node) {
  if (node->name != NULL && node->name[0] != '\0') return node->name;
  for (size_t i = 0; i < node->n_output; i++)
    if (node->output[i][0] != '\0') return node->output[i];
  return "";
}

enum { MOST_WARNINGS = 16 };

void heddle__onnx_warn(heddle__onnx_reader *r, const char *format, ...) {
  char words[300];
  va_list args;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  json_t *text = json_sprintf("%s: %s", r->name, words);
  bool is_new = text != NULL && json_array_size(r->warnings) < MOST_WARNINGS;
  for (size_t i = 0; is_new && i < json_array_size(r->warnings); i++) /* a tensor may be read several times */
    is_new = !json_equal(json_array_get(r->warnings, i), text);
  if (is_new) json_array_append(r->warnings, text); /* without memory for a warning there is none */
  json_decref(text);
}

void heddle__onnx_problem(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *format, ...) {
  heddle__onnx_problems *p = &r->problems;
  char words[sizeof p->kinds[0].words], domain[44] = "", op[44] = "";
  va_list args;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  if (node != NULL) {
    heddle__onnx_show(node->domain, domain);
    heddle__onnx_show(node->op_type, op);
  }
  if (p->n++ == 0 && node != NULL) snprintf(p->first_node, sizeof p->first_node, "%s", heddle__onnx_node_name(node));
  for (unsigned i = 0; node != NULL && i < p->n_kinds; i++) {
    struct heddle__onnx_kind_of_problem *k = &p->kinds[i];
    if (strcmp(k->op, op) != 0 || strcmp(k->domain, domain) != 0 || strcmp(k->words, words) != 0) continue;
    k->count++;
    return;
  }
  if (p->n_kinds == sizeof p->kinds / sizeof p->kinds[0]) {
    p->n_left_out++;
    return;
  }
  struct heddle__onnx_kind_of_problem *k = &p->kinds[p->n_kinds++];
  snprintf(k->words, sizeof k->words, "%s", words);
  snprintf(k->domain, sizeof k->domain, "%s", domain);
  snprintf(k->op, sizeof k->op, "%s", op);
  heddle__onnx_show(node != NULL ? heddle__onnx_node_name(node) : "", k->first);
  k->count = 1;
}

/* "node 'a' (Op): words", or "3 nodes (Op), the first is 'a': words". Returns the length. */
static int show_kind(const struct heddle__onnx_kind_of_problem *k, char *out, size_t size) {
  const char *colon = k->domain[0] != '\0' ? ": " : "";
  if (k->op[0] == '\0') return snprintf(out, size, "%s", k->words);
  if (k->count == 1) return snprintf(out, size, "node '%s' (%s%s%s): %s", k->first, k->domain, colon, k->op, k->words);
  return snprintf(out, size, "%u nodes (%s%s%s), the first is '%s': %s", k->count, k->domain, colon, k->op, k->first,
                  k->words);
}

heddle_status heddle__onnx_complain(heddle__onnx_reader *r) {
  const heddle__onnx_problems *p = &r->problems;
  char all[680] = "", one[480];
  size_t used = 0;
  unsigned listed = 0;
  if (r->arena.is_out) return heddle__onnx_no_memory(r); /* what was noted may come of that */
  if (p->n == 0) return HEDDLE_OK;
  for (unsigned i = 0; i < p->n_kinds; i++) {
    const int n = show_kind(&p->kinds[i], one, sizeof one);
    if (n < 0 || (size_t)n >= sizeof all - used - 26) continue; /* room for what follows */
    used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", used > 0 ? "; " : "", one);
    listed += p->kinds[i].count;
  }
  if (listed < p->n) snprintf(all + used, sizeof all - used, "; and %u more", p->n - listed);
  heddle__onnx_fail(r, HEDDLE_EUNSUPPORTED, "this is not supported: %s", all);
  return p->first_node[0] != '\0' ? heddle__at_node(HEDDLE_EUNSUPPORTED, r->err, HEDDLE__NO_NODE, p->first_node)
                                  : HEDDLE_EUNSUPPORTED;
}
