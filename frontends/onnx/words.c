/* frontends/onnx/words.c: how the reader words what is wrong: errors with the file's name, and the list of all that is not
 * supported. */
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

void heddle__onnx_problem(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *format, ...) {
  char words[240], one[400], name[44], op[44];
  va_list args;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  const char *before = r->n_listed > 0 ? "; " : "";
  int n;
  if (node == NULL) n = snprintf(one, sizeof one, "%s%s", before, words);
  else
    n = snprintf(one, sizeof one, "%snode '%s' (%s%s%s): %s", before,
                 heddle__onnx_show(heddle__onnx_node_name(node), name), node->domain,
                 node->domain[0] != '\0' ? ": " : "", heddle__onnx_show(node->op_type, op), words);
  if (r->n_problems++ == 0 && node != NULL)
    snprintf(r->first_problem, sizeof r->first_problem, "%s", heddle__onnx_node_name(node));
  if (r->n_listed + 1 < r->n_problems || n < 0 || (size_t)n >= sizeof r->problems - r->problems_used - 24) return;
  memcpy(r->problems + r->problems_used, one, (size_t)n + 1);
  r->problems_used += (size_t)n;
  r->n_listed++;
}

heddle_status heddle__onnx_complain(heddle__onnx_reader *r) {
  if (r->arena.is_out) return heddle__onnx_no_memory(r); /* what was noted may come of that */
  if (r->n_problems == 0) return HEDDLE_OK;
  if (r->n_listed < r->n_problems)
    snprintf(r->problems + r->problems_used, sizeof r->problems - r->problems_used, "; and %u more",
             r->n_problems - r->n_listed);
  heddle__onnx_fail(r, HEDDLE_EUNSUPPORTED, "this is not supported: %s", r->problems);
  return r->first_problem[0] != '\0' ? heddle__at_node(HEDDLE_EUNSUPPORTED, r->err, HEDDLE__NO_NODE, r->first_problem)
                                     : HEDDLE_EUNSUPPORTED;
}
