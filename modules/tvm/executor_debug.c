/* modules/tvm/executor_debug.c: the methods that look into a graph: the value of a node, and where the time of a run
 * goes. A node's value is computed by a run up to it, under a program that keeps it. */
#include <inttypes.h>
#include <stdio.h>

#include "modules/tvm/executor_object.h"

/* The node that argument 0 means, as libheddle names it; *number: -1 where it is given by name. */
static bool node_of(heddle__runner *o, const heddle__args *a, char numbered[24], const char **name, int64_t *number) {
  *number = -1;
  if (a->n > 0 && a->codes[0] == PACKED_STRING) return heddle__args_name(a, 0, name);
  if (!heddle__args_int(a, 0, 0, (int64_t)heddle_graph_node_count(o->graph) - 1, number)) return false;
  snprintf(numbered, 24, "#%" PRId64, *number);
  *name = numbered;
  return true;
}

/* The value of a node by a run up to it; NULL with words. */
static heddle_tensor *run_to(heddle__runner *o, const heddle__args *a, const char *name, uint32_t output) {
  heddle_tensor *value = NULL;
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  o->used = true;
  for (uint32_t i = 0; i < o->n_inputs && o->moves && s == HEDDLE_OK; i++)
    if (o->inputs[i].device != NULL) s = heddle_tensor_copy(o->inputs[i].bound, o->inputs[i].device, &err);
  if (s == HEDDLE_OK) s = heddle_executor_run_to(o->ex, name, output, &value, &err);
  if (s != HEDDLE_OK) heddle__refuse_error(a->method, &err);
  return value;
}

HEDDLE__METHOD(heddle__executor_debug_get_output) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"debug_get_output", args, codes, n};
  char numbered[24];
  const char *name = NULL;
  int64_t number = -1;
  heddle_error err = {0};
  if (!heddle__args_count(&a, 1, 2) || !node_of(o, &a, numbered, &name, &number)) return -1;
  heddle_tensor *to = n == 2 ? heddle__args_tensor(&a, 1) : NULL;
  if (n == 2 && to == NULL) return -1;
  heddle_tensor *value = run_to(o, &a, name, 0);
  if (n == 1 && value != NULL) return heddle__give_tensor(value, ret, ret_code);
  heddle_status s = value != NULL ? heddle_tensor_copy(to, value, &err) : HEDDLE_OK;
  if (s != HEDDLE_OK) heddle__refuse_error(a.method, &err);
  bool good = value != NULL && s == HEDDLE_OK;
  heddle_tensor_release(to);
  heddle_tensor_release(value);
  return good ? 0 : -1;
}

/* From a node to a later one nothing is computed again, unless inputs changed; where a run of the whole graph fails, the
 * nodes before that can be had one by one. */
HEDDLE__METHOD(heddle__executor_execute_node) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"execute_node", args, codes, n};
  char numbered[24];
  const char *name = NULL;
  int64_t number = -1, before = o->executed;
  heddle_error err = {0};
  (void)ret, (void)ret_code;
  if (!heddle__args_count(&a, 1, 1) || !node_of(o, &a, numbered, &name, &number)) return -1;
  if (number < 0) return heddle__refuse(a.method, "argument 0: expected the number of a node");
  o->used = true;
  bool kept = o->all != NULL && number > before && !o->changed;
  if (!kept && heddle__values_take(o, &err) != HEDDLE_OK) {
    heddle_tensor *value = run_to(o, &a, name, 0);
    if (value == NULL) return -1;
    heddle_tensor_release(value);
  }
  o->executed = number;
  return 0;
}

HEDDLE__METHOD(heddle__executor_get_node_output) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"get_node_output", args, codes, n};
  char numbered[24];
  const char *name = NULL;
  int64_t number = -1, output = 0;
  if (!heddle__args_count(&a, 1, 2) || (n == 2 && !heddle__args_int(&a, 1, 0, UINT32_MAX - 1, &output)) ||
      !node_of(o, &a, numbered, &name, &number))
    return -1;
  heddle_tensor *value = NULL;
  if (number >= 0 && number <= o->executed) value = heddle__values_get(o, (uint32_t)number, (uint32_t)output);
  if (value == NULL) value = run_to(o, &a, name, (uint32_t)output);
  return value != NULL ? heddle__give_tensor(value, ret, ret_code) : -1;
}

/* One timed run as JSON: its steps in order of start. What TVM's collectors count is not there: none may be given. */
HEDDLE__METHOD(heddle__executor_profile) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"profile", args, codes, n};
  const heddle_profile_entry *steps = NULL;
  size_t count = 0;
  heddle_error err = {0};
  heddle__sheet j = {0};
  if (!heddle__args_count(&a, 0, 1)) return -1;
  if (n == 1 && codes[0] != PACKED_NULL)
    return heddle__refuse(a.method, "there are no collectors of metrics: give null");
  heddle_status s = heddle__executor_go(o, &err); /* planned, bound, and warm */
  if (s == HEDDLE_OK) s = heddle_executor_profile(o->ex, &steps, &count, &err);
  if (s != HEDDLE_OK) return heddle__refuse_error(a.method, &err);
  uint64_t first = count > 0 ? steps[0].start_ns : 0, last = first;
  for (size_t i = 0; i < count; i++) last = steps[i].end_ns > last ? steps[i].end_ns : last;
  heddle__say_text(&j, "{\"duration_us\": ");
  heddle__say_us(&j, last - first);
  heddle__say_text(&j, ", \"calls\": [");
  for (size_t i = 0; i < count; i++) {
    const heddle_profile_entry *e = &steps[i];
    heddle__say(&j, "%s{\"name\": ", i > 0 ? ", " : "");
    heddle__say_string(&j, e->name);
    heddle__say_text(&j, ", \"op\": ");
    heddle__say_string(&j, e->op);
    heddle__say_text(&j, ", \"device\": ");
    heddle__say_string(&j, e->device);
    heddle__say(&j, ", \"stream\": %u, \"start_us\": ", (unsigned)e->stream);
    heddle__say_us(&j, e->start_ns - first);
    heddle__say_text(&j, ", \"duration_us\": ");
    heddle__say_us(&j, e->end_ns - e->start_ns);
    heddle__say_text(&j, "}");
  }
  heddle__say_text(&j, "]}");
  return heddle__json_give(&j, ret, ret_code);
}
