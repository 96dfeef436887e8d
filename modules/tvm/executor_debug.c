/* modules/tvm/executor_debug.c: the methods that look into a graph: the value of a node, and where the time of a run
 * goes. A node's value is computed by a run up to it, under a program that keeps it. */
#include <inttypes.h>
#include <stdio.h>

#include "modules/tvm/executor_object.h"

/* The value of a node, by number or name; its number, or -1: it was named. */
static heddle_tensor *value_of(heddle__runner *o, const heddle__args *a, uint32_t output, int64_t *number) {
  char numbered[24];
  const char *name = numbered;
  heddle_tensor *value = NULL;
  heddle_error err = {0};
  heddle_status s = HEDDLE_OK;
  *number = -1;
  if (a->n > 0 && a->codes[0] == PACKED_STRING) {
    if (!heddle__args_name(a, 0, &name)) return NULL;
  } else {
    if (!heddle__args_int(a, 0, 0, (int64_t)heddle_graph_node_count(o->graph) - 1, number)) return NULL;
    snprintf(numbered, sizeof numbered, "#%" PRId64, *number);
  }
  if (*number >= 0 && *number == o->at && output == 0) return heddle_tensor_retain(o->value);
  o->used = true;
  for (uint32_t i = 0; i < o->n_inputs && o->moves && s == HEDDLE_OK; i++)
    if (o->inputs[i].device != NULL) s = heddle_tensor_copy(o->inputs[i].bound, o->inputs[i].device, &err);
  if (s == HEDDLE_OK) s = heddle_executor_run_to(o->ex, name, output, &value, &err);
  if (s != HEDDLE_OK) heddle__refuse_error(a->method, &err);
  return value;
}

static void forget_value(heddle__runner *o) {
  heddle_tensor_release(o->value);
  o->value = NULL;
  o->at = -1;
}

HEDDLE__METHOD(heddle__executor_debug_get_output) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"debug_get_output", args, codes, n};
  int64_t number = -1;
  heddle_error err = {0};
  if (!heddle__args_count(&a, 1, 2)) return -1;
  forget_value(o);
  heddle_tensor *to = n == 2 ? heddle__argument_tensor(args, codes, 1) : NULL;
  if (n == 2 && to == NULL) return -1;
  heddle_tensor *value = value_of(o, &a, 0, &number);
  heddle_status s = value != NULL && to != NULL ? heddle_tensor_copy(to, value, &err) : HEDDLE_OK;
  heddle_tensor_release(to);
  if (value != NULL && to == NULL && n == 1) return heddle__give_tensor(value, ret, ret_code);
  if (s != HEDDLE_OK) heddle__refuse_error(a.method, &err);
  heddle_tensor_release(value);
  return value != NULL && s == HEDDLE_OK ? 0 : -1;
}

HEDDLE__METHOD(heddle__executor_execute_node) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"execute_node", args, codes, n};
  int64_t number = -1;
  (void)ret, (void)ret_code;
  if (!heddle__args_count(&a, 1, 1)) return -1;
  forget_value(o);
  o->value = value_of(o, &a, 0, &number);
  o->at = o->value != NULL ? number : -1;
  return o->value != NULL ? 0 : -1;
}

HEDDLE__METHOD(heddle__executor_get_node_output) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"get_node_output", args, codes, n};
  int64_t number = -1, output = 0;
  if (!heddle__args_count(&a, 1, 2) || (n == 2 && !heddle__args_int(&a, 1, 0, UINT32_MAX - 1, &output))) return -1;
  heddle_tensor *value = value_of(o, &a, (uint32_t)output, &number);
  return value != NULL ? heddle__give_tensor(value, ret, ret_code) : -1;
}

/* One timed run as JSON: its steps in order of start. What TVM's collectors count is not there: none may be given. */
HEDDLE__METHOD(heddle__executor_profile) {
  heddle__runner *o = heddle__executor_self(self);
  heddle__args a = {"profile", args, codes, n};
  const heddle_profile_entry *steps = NULL;
  size_t count = 0;
  heddle_error err = {0};
  heddle__json j = {.data = NULL};
  if (!heddle__args_count(&a, 0, 1)) return -1;
  if (n == 1 && codes[0] != PACKED_NULL)
    return heddle__refuse(a.method, "there are no collectors of metrics: give null");
  heddle_status s = heddle__executor_go(o, &err); /* planned, bound, and warm */
  if (s == HEDDLE_OK) s = heddle_executor_profile(o->ex, &steps, &count, &err);
  if (s != HEDDLE_OK) return heddle__refuse_error(a.method, &err);
  uint64_t first = count > 0 ? steps[0].start_ns : 0, last = first;
  for (size_t i = 0; i < count; i++) last = steps[i].end_ns > last ? steps[i].end_ns : last;
  heddle__json_add(&j, "{\"duration_us\": ");
  heddle__json_microseconds(&j, last - first);
  heddle__json_add(&j, ", \"calls\": [");
  for (size_t i = 0; i < count; i++) {
    const heddle_profile_entry *e = &steps[i];
    heddle__json_add(&j, "%s{\"name\": ", i > 0 ? ", " : "");
    heddle__json_string(&j, e->name);
    heddle__json_add(&j, ", \"op\": ");
    heddle__json_string(&j, e->op);
    heddle__json_add(&j, ", \"device\": ");
    heddle__json_string(&j, e->device);
    heddle__json_add(&j, ", \"stream\": %u, \"start_us\": ", (unsigned)e->stream);
    heddle__json_microseconds(&j, e->start_ns - first);
    heddle__json_add(&j, ", \"duration_us\": ");
    heddle__json_microseconds(&j, e->end_ns - e->start_ns);
    heddle__json_add(&j, "}");
  }
  heddle__json_add(&j, "]}");
  return heddle__json_give(&j, ret, ret_code);
}
