/* modules/tvm/executor_times.c: the methods of the debug executor that time each node, over repeated runs whose steps
 * are timed one by one. */
#include <string.h>

#include "core/alloc.h"
#include "modules/tvm/executor_object.h"
#include "modules/tvm/timing.h"

/* Measurements in the making. */
typedef struct times {
  heddle__runner *o;
  const char *method;
  uint32_t n_nodes;
  int64_t repeat;
  int64_t only;    /* the node whose time decides how often it runs; -1: all together */
  uint64_t *ns;    /* of each node in the present measurement */
  double *seconds; /* [node][repeat] */
  uint32_t *nodes; /* of the steps of a run: 0 not looked up, 1 none, else the node + 2 */
  size_t n_steps;
} times;

/* Whether a step before has the node already: nodes may share a name, and their steps come in the graph's order. */
static bool taken(const times *t, uint32_t node, const heddle_profile_entry *steps, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (t->nodes[steps[i].step] == node + 2) return true;
  return false;
}

/* Whether the text of a step of several nodes ("a+b") ends with that of a node. */
static bool ends_with(const char *step, const char *node) {
  const size_t n = strlen(step), k = strlen(node);
  return n > k && strcmp(step + n - k, node) == 0 && step[n - k - 1] == '+';
}

static bool is_of(const heddle_profile_entry *e, const char *op, const char *name) {
  return (strcmp(e->op, op) == 0 && strcmp(e->name, name) == 0) || (ends_with(e->op, op) && ends_with(e->name, name));
}

/* The node that a step computes, the last of several; UINT32_MAX: none, it is a copy. Looked up once a step. */
static uint32_t node_of(times *t, const heddle_profile_entry *steps, size_t count, const heddle_profile_entry *e) {
  uint32_t *known = &t->nodes[e->step];
  for (uint32_t i = 0; i < t->n_nodes && *known == 0; i++) {
    heddle_node_info info = {.struct_size = sizeof info};
    if (heddle_graph_node(t->o->graph, i, &info, NULL) != HEDDLE_OK) continue;
    const char *op = info.func_name[0] != '\0' ? info.func_name : info.op;
    if (is_of(e, op, info.name) && !taken(t, i, steps, count)) *known = i + 2;
  }
  if (*known == 0) *known = 1;
  return *known == 1 ? UINT32_MAX : *known - 2;
}

static bool room_for(times *t, const heddle_profile_entry *steps, size_t count) {
  size_t most = 0;
  for (size_t i = 0; i < count; i++) most = steps[i].step >= most ? (size_t)steps[i].step + 1 : most;
  if (most <= t->n_steps) return true;
  uint32_t *more = heddle__grow(t->nodes, t->n_steps, most, sizeof *more);
  if (more == NULL) return false;
  t->nodes = more;
  t->n_steps = most;
  return true;
}

static int measure(void *user, int64_t number, uint64_t *ns) {
  times *t = user;
  heddle_error err = {0};
  memset(t->ns, 0, t->n_nodes * sizeof *t->ns);
  *ns = 0;
  for (int64_t k = 0; k < number; k++) {
    const heddle_profile_entry *steps = NULL;
    size_t count = 0;
    if (heddle_executor_profile(t->o->ex, &steps, &count, &err) != HEDDLE_OK)
      return heddle__refuse_error(t->method, &err);
    if (!room_for(t, steps, count)) return heddle__refuse(t->method, "out of memory");
    for (size_t i = 0; i < count; i++) {
      uint32_t node = node_of(t, steps, count, &steps[i]);
      if (node == UINT32_MAX) continue;
      uint64_t took = steps[i].end_ns - steps[i].start_ns;
      t->ns[node] += took;
      if (t->only < 0 || t->only == (int64_t)node) *ns += took;
    }
  }
  return 0;
}

static void measured(void *user, int64_t repeat, int64_t number, uint64_t ns) {
  times *t = user;
  (void)ns;
  for (uint32_t i = 0; i < t->n_nodes; i++)
    t->seconds[(size_t)i * (size_t)t->repeat + (size_t)repeat] = (double)t->ns[i] / (double)number / 1e9;
}

/* Fills t->seconds. -1 with words; t is freed by done in any case. */
static int time_nodes(times *t, const heddle__timing *timing) {
  heddle_error err = {0};
  t->n_nodes = heddle_graph_node_count(t->o->graph);
  t->repeat = timing->repeat;
  t->ns = heddle__alloc(t->n_nodes, sizeof *t->ns);
  t->seconds = heddle__alloc(t->n_nodes, (size_t)t->repeat * sizeof *t->seconds);
  if (t->ns == NULL || t->seconds == NULL) return heddle__refuse(t->method, "out of memory");
  if (heddle__executor_go(t->o, &err) != HEDDLE_OK) return heddle__refuse_error(t->method, &err);
  return heddle__timing_run(timing, measure, measured, t);
}

static void done(times *t) {
  heddle__free(t->ns);
  heddle__free(t->seconds);
  heddle__free(t->nodes);
}

/* Bytes: the number of nodes as an int64, then for each node its seconds a run, a double a measurement. */
HEDDLE__METHOD(heddle__executor_run_individual) {
  heddle__args a = {"run_individual", args, codes, n};
  times t = {.o = heddle__executor_self(self), .method = a.method, .only = -1};
  heddle__timing timing;
  if (!heddle__args_count(&a, 1, 6) || !heddle__timing_args(&a, 0, &timing)) return -1;
  int rc = time_nodes(&t, &timing);
  size_t bytes = (size_t)t.n_nodes * (size_t)t.repeat * sizeof(double);
  char *all = rc == 0 ? heddle__alloc(8 + bytes, 1) : NULL;
  int64_t count = t.n_nodes;
  if (all != NULL) {
    memcpy(all, &count, 8);
    memcpy(all + 8, t.seconds, bytes);
    rc = heddle__give_bytes(all, 8 + bytes, ret, ret_code);
  } else if (rc == 0) {
    rc = heddle__refuse(a.method, "out of memory");
  }
  heddle__free(all);
  done(&t);
  return rc;
}

/* Bytes: the seconds of one node a run, a double a measurement. */
HEDDLE__METHOD(heddle__executor_run_individual_node) {
  heddle__args a = {"run_individual_node", args, codes, n};
  times t = {.o = heddle__executor_self(self), .method = a.method};
  heddle__timing timing;
  if (!heddle__args_count(&a, 1, 7) ||
      !heddle__args_int(&a, 0, 0, (int64_t)heddle_graph_node_count(t.o->graph) - 1, &t.only) ||
      !heddle__timing_args(&a, 1, &timing))
    return -1;
  int rc = time_nodes(&t, &timing);
  if (rc == 0)
    rc = heddle__give_bytes(t.seconds + (size_t)t.only * (size_t)t.repeat, (size_t)t.repeat * sizeof(double), ret,
                            ret_code);
  done(&t);
  return rc;
}
