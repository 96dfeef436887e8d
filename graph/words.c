/* graph/words.c: words for errors about nodes and values: bounded, printable, always with the file and the node.
 * Nothing here allocates. */
#include "graph/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/failure.h"
#include "core/tensor.h"
#include "heddle/text.h"

#define SHOWN 60

const char *heddle__show(const char *text, char out[64]) {
  size_t n = text != NULL ? strlen(text) : 0;
  if (n > SHOWN) {
    memcpy(out, text, SHOWN / 2);
    memcpy(out + SHOWN / 2, "...", 3);
    memcpy(out + SHOWN / 2 + 3, text + n - (SHOWN / 2 - 3), SHOWN / 2 - 3);
    n = SHOWN;
  } else if (n > 0) {
    memcpy(out, text, n);
  }
  out[n] = '\0';
  (void)heddle_text_clean(out, out, 64);
  return out;
}

heddle_status heddle__node_fail(const heddle_graph *g, const heddle__node *node, heddle_error *err,
                                heddle_status status, const char *format, ...) {
  char words[768], name[64], op[64];
  va_list args;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  bool known = node >= g->nodes && node < g->nodes + g->n_nodes;
  const uint32_t index = known ? (uint32_t)(node - g->nodes) : HEDDLE__NO_NODE;
  heddle__show(node->name, name);
  heddle__show(node->op, op);
  if (known) heddle__fail(err, status, "%s: node %u '%s' (%s): %s", g->source, (unsigned)index, name, op, words);
  else heddle__fail(err, status, "%s: node '%s' (%s): %s", g->source, name, op, words);
  return heddle__at_node(status, err, index, node->name);
}

const char *heddle__type_words(heddle_dtype dtype, uint32_t ndim, const int64_t *shape, char out[128]) {
  char name[32], dims[96];
  heddle__dtype_name(dtype, name);
  heddle__shape_name(shape, ndim, dims, sizeof dims);
  snprintf(out, 128, "%s %s", name, dims);
  return out;
}
