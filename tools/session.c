/* tools/session.c: a context, a model in it and values for its inputs, as the words of the command line say. */
#include "session.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "library.h"
#include "made_up.h"
#include "model_file.h"
#include "ranks.h"
#include "text.h"

enum {
  MOST_IN_FLIGHT = 64, /* as heddle/model.h says */
  MOST_PROGRAMS = 1000000,
  DLPACK_CPU = 1 /* kDLCPU */
};

static int no_memory(const session *s) {
  return fail_text(s->command, "out of memory");
}

char *before_equals(const char *pair, const char **rest) {
  size_t n = strcspn(pair, "=");
  char *name = malloc(n + 1);
  if (name == NULL) return NULL;
  memcpy(name, pair, n);
  name[n] = '\0';
  *rest = pair + n + 1;
  return name;
}

/* ---- context and model */

int session_context(session *s, const char *command, const options *o) {
  *s = (session){.command = command, .o = o};
  size_t n = 0;
  char threads[24];
  heddle_error err = {0};
  heddle_setting *settings = calloc(o->settings.count + 2, sizeof *settings);
  if (settings == NULL) return no_memory(s);
  int status = DONE;
  for (size_t i = 0; i < o->settings.count && status == DONE; i++) {
    settings[n].key = before_equals(o->settings.data[i], &settings[n].value);
    if (settings[n++].key == NULL) status = no_memory(s);
  }
  size_t n_owned = n;
  if (o->threads != 0) {
    snprintf(threads, sizeof threads, "%llu", (unsigned long long)o->threads);
    settings[n++] = (heddle_setting){"threads", threads};
  }
  if (o->retry) settings[n++] = (heddle_setting){"probe.retry", "1"};
  if (status == DONE && ranks_context(o->devices, settings, n, &s->ctx, &err) != HEDDLE_OK)
    status = fail(command, &err);
  uint32_t rank = 0;
  heddle_context_rank(s->ctx, &rank, NULL);
  s->is_root = rank == 0;
  fail_tells(s->ctx);
  if (!s->is_root && freopen("/dev/null", "w", stdout) == NULL) /* one rank prints */
    status = fail_text(command, "/dev/null cannot be opened");
  for (size_t i = 0; i < n_owned; i++) free((char *)settings[i].key);
  free(settings);
  return status;
}

static int load_values(session *s) {
  const words *w = &s->o->inputs;
  heddle_error err = {0};
  s->names = calloc(w->count + 1, sizeof *s->names);
  s->values = calloc(w->count + 1, sizeof *s->values);
  if (s->names == NULL || s->values == NULL) return no_memory(s);
  for (; s->n_values < w->count; s->n_values++) {
    const char *path;
    const char *name = s->names[s->n_values] = before_equals(w->data[s->n_values], &path);
    if (name == NULL) return no_memory(s);
    for (size_t k = 0; k < s->n_values; k++)
      if (strcmp(s->names[k], name) == 0) return fail_text(s->command, "input '%s' is given twice", name);
    if (heddle_tensor_load_npy(path, &s->values[s->n_values], &err) != HEDDLE_OK) return fail(s->command, &err);
  }
  return DONE;
}

/* Whether the pattern is the name of a node of the graph, or of the graphs that its nodes run. */
static bool names_node(const heddle_graph *g, const char *pattern) {
  for (uint32_t k = 0; k < heddle_graph_node_count(g); k++) {
    heddle_node_info node = {.struct_size = sizeof node};
    if (heddle_graph_node(g, k, &node, NULL) != HEDDLE_OK) return true;
    if (strcmp(node.op, "null") != 0 && fnmatch(pattern, node.name, 0) == 0) return true;
    const heddle_graph *inner;
    for (uint32_t i = 0; (inner = heddle_graph_inner(g, k, i, NULL)) != NULL; i++)
      if (names_node(inner, pattern)) return true;
  }
  return false;
}

/* Whether a rule of the command line has a pattern that a name matches. */
static bool has_rule(const words *place, const char *name) {
  bool found = false;
  for (size_t i = 0; i < place->count && !found; i++) {
    const char *device;
    if (strchr(place->data[i], '=') == NULL) continue;
    char *pattern = before_equals(place->data[i], &device);
    found = pattern != NULL && fnmatch(pattern, name, 0) == 0;
    free(pattern);
  }
  return found;
}

/* Whether a node is left that neither a rule nor an annotation places, in a graph and in those that its nodes run. */
static bool leaves_nodes(const heddle_graph *g, const words *place, bool annotated) {
  for (uint32_t k = 0; k < heddle_graph_node_count(g); k++) {
    heddle_node_info node = {.struct_size = sizeof node};
    const heddle_graph *inner;
    if (heddle_graph_node(g, k, &node, NULL) != HEDDLE_OK) return true;
    if (strcmp(node.op, "null") == 0) continue;
    bool runs_graphs = heddle_graph_inner(g, k, 0, NULL) != NULL;
    bool is_free = !annotated || (node.device[0] == '\0' && node.device_type == 0);
    if (!runs_graphs && is_free && !has_rule(place, node.name)) return true;
    for (uint32_t i = 0; (inner = heddle_graph_inner(g, k, i, NULL)) != NULL; i++)
      if (leaves_nodes(inner, place, annotated)) return true;
  }
  return false;
}

/* A rule with a slip in it would leave its nodes where they are, so it is said; and so is auto where all are placed. */
static void warn_of_idle_rules(const session *s) {
  if (!s->is_root) return; /* one rank says it */
  const heddle_graph *g = heddle_model_graph(s->model);
  for (size_t i = 0; i < s->o->place.count; i++) {
    const char *device;
    if (strcmp(s->o->place.data[i], "off") == 0) continue;
    if (strcmp(s->o->place.data[i], "auto") == 0) {
      if (!leaves_nodes(g, &s->o->place, !s->o->ignore_annotations))
        print_error("heddle %s: --place auto: rules and the model's annotations place every node\n", s->command);
      continue;
    }
    char *pattern = before_equals(s->o->place.data[i], &device);
    bool matches = pattern == NULL || names_node(g, pattern);
    if (!matches) print_error("heddle %s: --place %s: no node has such a name\n", s->command, s->o->place.data[i]);
    free(pattern);
  }
}

/* Whether a graph calls functions of a compiled library. */
static bool calls_functions(const heddle_graph *g) {
  for (uint32_t i = 0; i < heddle_graph_node_count(g); i++) {
    heddle_node_info node = {.struct_size = sizeof node};
    if (heddle_graph_node(g, i, &node, NULL) == HEDDLE_OK && strcmp(node.op, "tvm_op") == 0 &&
        strncmp(node.func_name, "__", 2) != 0) /* __nop and __copy belong to no library */
      return true;
  }
  return false;
}

int session_plan_failed(const session *s, const heddle_error *err) {
  int status = fail(s->command, err);
  if (heddle_model_library(s->model) == NULL && calls_functions(heddle_model_graph(s->model)))
    print_error("(--lib FILE names the library that was compiled with the graph)\n");
  return status;
}

/* A library without a model: what can be done with it. */
static int complain_of_library(const session *s, const heddle_error *err) {
  const options *o = s->o;
  int status = fail(s->command, err);
  print_error(
      "(heddle %s GRAPH.json --lib %s takes its functions for a graph; heddle info %s lists them; heddle bench %s "
      "--func NAME times one)\n",
      s->command, o->model, o->model, o->model);
  return status;
}

/* What is given for any model; the library and names in it come on top. Strings are of the options. */
int session_model_options(session *s, heddle_model_options *mo) {
  const options *o = s->o;
  *mo = (heddle_model_options){
      .struct_size = sizeof *mo, .devices = o->devices, .place = o->place.data, .n_place = o->place.count};
  if (o->precision != NULL) {
    const bool fast = strcmp(o->precision, "fast") == 0;
    if (!fast && strcmp(o->precision, "strict") != 0) {
      print_error("heddle %s: --precision is strict or fast, not '%s'\n", s->command, o->precision);
      return WRONG_WORDS;
    }
    mo->flags = fast ? HEDDLE_MODEL_FAST : HEDDLE_MODEL_STRICT;
  }
  if (o->ignore_annotations) mo->flags |= HEDDLE_MODEL_IGNORE_ANNOTATIONS;
  s->model_flags = mo->flags;
  if (o->in_flight == 0 || o->in_flight > MOST_IN_FLIGHT) {
    print_error("heddle %s: --in-flight is a number from 1 to %d\n", s->command, (int)MOST_IN_FLIGHT);
    return WRONG_WORDS;
  }
  mo->in_flight = (uint32_t)o->in_flight;
  if (o->programs > MOST_PROGRAMS) {
    print_error("heddle %s: --programs is a number from 1 to %d\n", s->command, (int)MOST_PROGRAMS);
    return WRONG_WORDS;
  }
  mo->max_programs = (uint32_t)o->programs;
  if (o->timeout > 0) mo->upload_timeout_ns = mo->plan_timeout_ns = session_timeout(s);
  mo->optimize = o->optimize;
  mo->memory = o->memory;
  mo->on_failure = o->on_failure;
  mo->state = o->state;
  mo->seed = o->seed;
  mo->dims = o->dims.data;
  mo->n_dims = o->dims.count;
  return DONE;
}

int session_model(session *s, const char *command, const options *o) {
  heddle_model_options mo;
  int status = session_context(s, command, o);
  if (status == DONE) status = session_model_options(s, &mo);
  if (status != DONE) return status;
  heddle_error err = {0};
  bool is_library = library_is(o->model);
  if (o->model_name != NULL && !is_library)
    return fail_text(command, "%s: it is no library that holds models; leave out --model", o->model);
  if (o->lib != NULL && is_library)
    return fail_text(command, "%s: it is a library itself, and brings its functions; leave out --lib", o->model);
  if (o->lib != NULL && heddle_module_load(s->ctx, o->lib, &s->library, &err) != HEDDLE_OK) return fail(command, &err);
  mo.library = s->library;
  mo.model_name = o->model_name;
  heddle_status r = heddle_model_load(s->ctx, o->model, o->params, &mo, &s->model, &err);
  if (r == HEDDLE_ENOTFOUND && is_library && o->model_name == NULL && mo.n_dims == 0)
    return complain_of_library(s, &err);
  if (r != HEDDLE_OK) return fail(command, &err);
  warn_of_idle_rules(s);
  return load_values(s);
}

/* ---- values that are made up */

static int set_random(session *s, uint32_t i, const heddle_io_info *info) {
  heddle_error err = {0};
  heddle_tensor *t = NULL;
  bool known = info->ndim != UINT32_MAX;
  for (uint32_t k = 0; known && k < info->ndim; k++) known = info->shape[k] >= 0;
  if (!known)
    return fail_text(s->command,
                     "input '%s': its shape is not known, so its value cannot be made up; give --input %s=FILE.npy",
                     info->name, info->name);
  if (heddle_tensor_create(NULL, info->dtype, info->shape, info->ndim, &t, &err) != HEDDLE_OK)
    return fail(s->command, &err);
  int status = DONE;
  if (!made_up_fill(t, i + 1)) {
    char dtype[32];
    dtype_text(info->dtype, dtype);
    status = fail_text(s->command, "input '%s': values of %s cannot be made up; give --input %s=FILE.npy", info->name,
                       dtype, info->name);
  } else if (heddle_executor_set_input(s->ex, i, t, &err) != HEDDLE_OK) {
    status = fail(s->command, &err);
  }
  heddle_tensor_release(t);
  s->n_random++;
  return status;
}

/* ---- executor */

static int complain_of_missing(const session *s, uint32_t first) {
  uint32_t n = heddle_executor_input_count(s->ex);
  (void)fail_text(s->command, "%s: these inputs have no value:", s->o->model);
  for (uint32_t i = first; i < n; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    if (s->given[i] || heddle_executor_input_info(s->ex, i, &info, NULL) != HEDDLE_OK || info.is_param) continue;
    char dtype[32], shape[200];
    dtype_text(info.dtype, dtype);
    shape_text(info.shape, info.ndim, NULL, shape, sizeof shape);
    print_error("  %s  %s %s\n", info.name, dtype, shape);
  }
  print_error("give each with --input NAME=FILE.npy, parameters with --params FILE, or let --random make them up\n");
  return FAILED;
}

static void release_tensor(void *tensor) {
  heddle_tensor_release(tensor);
}

/* .npy has no bfloat16: its bits are uint16 there, in what is written and in what is read. */
static heddle_status read_as_bfloat16(session *s, size_t value, heddle_error *err) {
  heddle_tensor *t = s->values[value], *same = NULL;
  heddle_dtype dtype = heddle_tensor_dtype(t), wanted = {HEDDLE_DTYPE_BFLOAT, 16, 1};
  heddle_io_info info = {.struct_size = sizeof info};
  int32_t at = heddle_executor_input_index(s->ex, s->names[value]);
  if (at < 0 || dtype.code != HEDDLE_DTYPE_UINT || dtype.bits != 16 || dtype.lanes != 1) return HEDDLE_OK;
  heddle_status r = heddle_executor_input_info(s->ex, (uint32_t)at, &info, err);
  if (r != HEDDLE_OK || info.dtype.code != wanted.code || info.dtype.bits != wanted.bits) return r;
  r = heddle_tensor_wrap(heddle_tensor_data(t), wanted, heddle_tensor_shape(t), heddle_tensor_ndim(t),
                         heddle_tensor_strides(t), release_tensor, t, &same, err);
  if (r == HEDDLE_OK) s->values[value] = same; /* which holds t */
  return r;
}

int session_executor(session *s, bool may_be_random) {
  heddle_error err = {0};
  if (heddle_executor_create(s->model, &s->ex, &err) != HEDDLE_OK) return session_plan_failed(s, &err);
  uint32_t n = heddle_executor_input_count(s->ex);
  s->given = calloc((size_t)n + 1, sizeof *s->given);
  if (s->given == NULL) return no_memory(s);
  for (size_t i = 0; i < s->n_values; i++) {
    if (read_as_bfloat16(s, i, &err) != HEDDLE_OK ||
        heddle_executor_set_input_by_name(s->ex, s->names[i], s->values[i], &err) != HEDDLE_OK)
      return fail_text(s->command, "--input %s: %s", s->o->inputs.data[i], err.text);
    int32_t at = heddle_executor_input_index(s->ex, s->names[i]);
    if (at >= 0) s->given[at] = true;
  }
  for (uint32_t i = 0; i < n; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    if (heddle_executor_input_info(s->ex, i, &info, &err) != HEDDLE_OK) return fail(s->command, &err);
    if (s->given[i] || info.is_param) continue;
    int status = may_be_random ? set_random(s, i, &info) : complain_of_missing(s, i);
    if (status != DONE) return status;
  }
  return DONE;
}

bool session_is_random(const session *s, uint32_t i) {
  heddle_io_info info = {.struct_size = sizeof info};
  return s->n_random > 0 && !s->given[i] && heddle_executor_input_info(s->ex, i, &info, NULL) == HEDDLE_OK &&
         !info.is_param;
}

uint64_t session_timeout(const session *s) {
  return s->o->timeout > 0 && s->o->timeout < 1e9 ? (uint64_t)(s->o->timeout * 1e9) + 1 : HEDDLE_FOREVER;
}

static void *end_process(void *nothing) {
  const struct timespec moment = {0, 300000000};
  (void)nothing;
  nanosleep(&moment, NULL);
  fflush(stdout);
  _exit(FAILED);
}

/* After a time limit: work of a device that does not end holds up its release for seconds. Then the process ends without.
 * What runs on the calling thread is waited for. */
static void end_soon(const session *s, const heddle_error *err) {
  pthread_t thread;
  heddle_failure where = {.struct_size = sizeof where};
  heddle_device_info info = {.struct_size = sizeof info};
  heddle_device *device = NULL;
  if (heddle_error_failure(err, &where) != HEDDLE_OK || where.device[0] == '\0' ||
      heddle_context_find_device(s->ctx, where.device, &device, NULL) != HEDDLE_OK ||
      heddle_device_get_info(device, &info, NULL) != HEDDLE_OK || info.type == DLPACK_CPU)
    return;
  if (pthread_create(&thread, NULL, end_process, NULL) == 0) pthread_detach(thread);
}

int session_run_failed(const session *s, heddle_status status, const heddle_error *err) {
  if (status != HEDDLE_ETIMEOUT) return fail(s->command, err);
  const int failed =
      fail_text(s->command, "a run did not end within %g seconds and was cancelled: %s", s->o->timeout, err->text);
  end_soon(s, err);
  heddle_executor_cancel(s->ex, NULL);
  return failed;
}

int session_finish(session *s, int status) {
  heddle_executor_release(s->ex);
  for (size_t i = 0; s->values != NULL && i < s->o->inputs.count; i++) {
    heddle_tensor_release(s->values[i]);
    free((char *)s->names[i]);
  }
  free(s->values);
  free(s->names);
  free(s->given);
  heddle_model_release(s->model);
  heddle_module_release(s->library);
  fail_tells(NULL);
  heddle_context_release(s->ctx);
  return status;
}
