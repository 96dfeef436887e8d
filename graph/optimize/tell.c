/* graph/optimize/tell.c: what the optimisations did to which nodes, in the log, and in plans as text and as JSON. */
#include <stdio.h>

#include "core/error.h"
#include "core/context.h"
#include "core/log.h"
#include "core/alloc.h"
#include "core/sheet.h"
#include "graph/optimize/net.h"

void opt_log(const opt_net *net) {
  for (uint32_t i = 0; i < net->n_changes; i++) {
    const opt_change *c = &net->changes[i];
    char text[400];
    size_t used = (size_t)snprintf(text, sizeof text, "%.120s: %s: ", net->graph->source, c->pass);
    for (uint32_t k = 0; k < c->n_nodes && used < sizeof text - 80; k++)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%.60s", k == 0 ? "" : ", ", c->nodes[k]);
    if (used < sizeof text) snprintf(text + used, sizeof text - used, ": %s", c->words);
    heddle__log_line(heddle__context_log(net->ask->ctx), HEDDLE_LOG_INFO, "optimize", text);
  }
}

/* Rows of a plan begin with two spaces and are not cut. */
static char *make_text(opt_net *net) {
  heddle__sheet sheet = {0};
  heddle__say(&sheet, "\noptimizations (%u)\n", (unsigned)net->n_changes);
  for (uint32_t i = 0; i < net->n_changes; i++) {
    const opt_change *c = &net->changes[i];
    heddle__say(&sheet, "  %s: ", c->pass);
    for (uint32_t k = 0; k < c->n_nodes; k++) heddle__say(&sheet, "%s%s", k > 0 ? ", " : "", c->nodes[k]);
    heddle__say(&sheet, ": %s\n", c->words);
  }
  char *text = sheet.failed ? NULL : opt_format(net, "%s", sheet.text);
  heddle__free(sheet.text);
  return text;
}

/* Names are UTF-8, as the reader of graphs has them. */
static json_t *make_json(const opt_net *net) {
  json_t *list = json_array();
  bool good = list != NULL;
  for (uint32_t i = 0; good && i < net->n_changes; i++) {
    const opt_change *c = &net->changes[i];
    json_t *nodes = json_array();
    good = nodes != NULL;
    for (uint32_t k = 0; good && k < c->n_nodes; k++)
      good = json_array_append_new(nodes, json_string(c->nodes[k])) == 0;
    good = json_array_append_new(list, json_pack("{so so so}", "pass", json_string(c->pass), "nodes", nodes, "change",
                                                 json_string(c->words))) == 0 &&
           good;
  }
  if (good) return list;
  json_decref(list);
  return NULL;
}

heddle_status opt_tell(opt_net *net, heddle__optimized *o, heddle_error *err) {
  o->text = make_text(net);
  o->changes = make_json(net);
  return o->text != NULL && o->changes != NULL ? HEDDLE_OK : heddle__no_memory(err, "the words about optimisations");
}
