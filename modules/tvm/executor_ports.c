/* modules/tvm/executor_ports.c: which input or output an argument means, by number or by one of the names that TVM has
 * for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/tvm/executor_object.h"

int32_t heddle__executor_input(heddle__runner *o, const heddle__args *a, int32_t i, bool soft) {
  int64_t number = -1;
  const char *name = NULL;
  heddle_error err = {0};
  if (i >= a->n || a->codes[i] != PACKED_STRING)
    return heddle__args_int(a, i, 0, (int64_t)o->n_inputs - 1, &number) ? (int32_t)number : -1;
  if (!heddle__args_name(a, i, &name)) return -1;
  int32_t found = heddle_executor_input_index(o->ex, name);
  if (found >= 0) return found;
  if (soft) return -2;
  heddle_executor_set_input_by_name(o->ex, name, NULL, &err); /* its words list the inputs */
  return heddle__refuse_error(a->method, &err);
}

const char *heddle__output_node(const heddle__runner *o, uint32_t i) {
  heddle_value_info info = {.struct_size = sizeof info};
  return heddle_graph_output(o->graph, i, &info, NULL) == HEDDLE_OK ? info.name : "";
}

/* "NODE:POSITION", where position counts the graph's outputs, as TVM writes it; -1: it is not that. */
static int32_t by_position(const heddle__runner *o, const char *name) {
  const char *colon = strrchr(name, ':');
  if (colon == NULL || colon[1] < '0' || colon[1] > '9') return -1;
  char *end;
  unsigned long position = strtoul(colon + 1, &end, 10);
  if (*end != '\0' || position >= o->n_outputs) return -1;
  const char *node = heddle__output_node(o, (uint32_t)position);
  size_t n = (size_t)(colon - name);
  return strlen(node) == n && memcmp(node, name, n) == 0 ? (int32_t)position : -1;
}

/* The only output of a node; -1: there is none, -2: there are several. */
static int32_t by_node(const heddle__runner *o, const char *name) {
  int32_t found = -1;
  for (uint32_t i = 0; i < o->n_outputs; i++) {
    if (strcmp(heddle__output_node(o, i), name) != 0) continue;
    if (found >= 0) return -2;
    found = (int32_t)i;
  }
  return found;
}

static int say_outputs(const heddle__runner *o, const char *method, const char *name, bool several) {
  char list[500] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < o->n_outputs && used < sizeof list - 80; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s'%.60s:%u'", used > 0 ? ", " : "",
                             heddle__output_node(o, i), (unsigned)i);
  return heddle__refuse(method, "%s '%.100s': name it by number, or as one of %s",
                        several ? "there are several outputs" : "there is no output", name, list);
}

int32_t heddle__executor_output(heddle__runner *o, const heddle__args *a, int32_t i) {
  int64_t number = -1;
  const char *name = NULL;
  if (i >= a->n || a->codes[i] != PACKED_STRING)
    return heddle__args_int(a, i, 0, (int64_t)o->n_outputs - 1, &number) ? (int32_t)number : -1;
  if (!heddle__args_name(a, i, &name)) return -1;
  int32_t found = by_position(o, name);
  if (found < 0) found = by_node(o, name);
  if (found == -1) found = heddle_executor_output_index(o->ex, name);
  return found >= 0 ? found : say_outputs(o, a->method, name, found == -2);
}
