/* tools/run.c: heddle run: runs a model once on given inputs, and prints or keeps its outputs. Can also time each step,
 * write a trace, and keep the results of every node. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "numbers.h"
#include "profile.h"
#include "session.h"
#include "text.h"

static const option known[] = {
    OPTIONS_OF_RUNS,
    {"random", OPTION_FLAG, NULL, offsetof(options, random),
     "makes up inputs that are not given; always the same ones"},
    {"load-state", OPTION_TEXT, "FILE", offsetof(options, load_state),
     "reads the state values from FILE before the run"},
    {"save-state", OPTION_TEXT, "FILE", offsetof(options, save_state), "writes the state values to FILE after the run"},
    {"output-dir", OPTION_TEXT, "DIR", offsetof(options, output_dir), "writes output_0.npy, output_1.npy, ... there"},
    OPTION_IN_FLIGHT("runs N times at once with the same inputs, and checks that all give the same bits"),
    OPTION_PROGRAMS,
    {"threads", OPTION_COUNT, "N", offsetof(options, threads), "threads for devices that compute on the host"},
    {"timeout", OPTION_NUMBER, "S", offsetof(options, timeout),
     "gives up when a run, or bringing the constants to devices, takes S seconds"},
    {"profile", OPTION_FLAG, NULL, offsetof(options, profile),
     "runs more often with each step timed; prints steps, operators and the critical path"},
    {"profile-json", OPTION_TEXT, "FILE.json", offsetof(options, profile_json), "the same, written as one JSON object"},
    {"profile-runs", OPTION_COUNT, "N", offsetof(options, profile_runs), "how often, 5 by default"},
    {"trace", OPTION_TEXT, "FILE.json", offsetof(options, trace),
     "runs once more, and writes a trace for a browser's trace viewer"},
    {"debug-dir", OPTION_TEXT, "DIR", offsetof(options, debug_dir), "writes output K of each node as NAME_K.npy there"},
    OPTION_SET,
    OPTION_TRUST,
    OPTION_KEY,
    OPTION_HELP,
    OPTION_END};

/* ---- files */

static int make_folder(const char *path) {
  struct stat info;
  if (mkdir(path, 0777) == 0) return DONE;
  int error = errno;
  if (error == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return DONE;
  if (error == EEXIST) error = ENOTDIR;
  return fail_text("run", "cannot make the folder %s: %s", path, strerror(error));
}

/* DIR/NAME.npy, made in its place by malloc. */
static int save(const heddle_tensor *t, const char *dir, const char *name, char **path) {
  heddle_error err = {0};
  size_t n = strlen(dir) + strlen(name) + 8;
  *path = malloc(n);
  if (*path == NULL) return fail_text("run", "out of memory");
  snprintf(*path, n, "%s/%s.npy", dir, name);
  return heddle_tensor_save_npy(t, *path, &err) == HEDDLE_OK ? DONE : fail("run", &err);
}

/* ---- outputs */

#define PRINTED 16

/* The first elements of a tensor of floats or whole numbers of the host. */
static void print_elements(const heddle_tensor *t) {
  const heddle_dtype d = heddle_tensor_dtype(t);
  const unsigned char *data = heddle_tensor_data(t);
  const uint64_t width = d.bits / 8, n = numbers_count(t);
  if (data == NULL || n == 0 || !numbers_known(d) || !heddle_tensor_is_contiguous(t)) return;
  print("   ");
  for (uint64_t i = 0; i < n && i < PRINTED; i++) {
    uint64_t bits = 0;
    memcpy(&bits, data + i * width, width);
    if (numbers_are_floats(d)) print(" %.6g", number_at(t, i));
    else if (d.code != HEDDLE_DTYPE_INT) print(" %" PRIu64, bits);
    else print(" %" PRId64, (int64_t)(bits << (64 - d.bits)) >> (64 - d.bits));
  }
  print("%s\n", n > PRINTED ? " ..." : "");
}

static int print_output(session *s, uint32_t i) {
  heddle_error err = {0};
  heddle_io_info info = {.struct_size = sizeof info};
  heddle_tensor *t = NULL;
  if (heddle_executor_output_info(s->ex, i, &info, &err) != HEDDLE_OK ||
      heddle_executor_view_output(s->ex, i, &t, &err) != HEDDLE_OK)
    return fail("run", &err);
  char dtype[32], shape[200], name[32], *path = NULL;
  dtype_text(heddle_tensor_dtype(t), dtype);
  shape_text(heddle_tensor_shape(t), heddle_tensor_ndim(t), NULL, shape, sizeof shape);
  snprintf(name, sizeof name, "output_%" PRIu32, i);
  int status = DONE;
  if (s->o->output_dir != NULL) status = save(t, s->o->output_dir, name, &path);
  if (status == DONE) {
    print("output %" PRIu32 "  %s  %s %s%s%s\n", i, info.name, dtype, shape, path != NULL ? "  " : "",
          path != NULL ? path : "");
    if (path == NULL) print_elements(t);
  }
  free(path);
  heddle_tensor_release(t);
  return status;
}

/* ---- every node */

/* A file name for a node's output. A name that is shared or cannot be a file's gets the node's number: NAME#ID_K. */
static void file_name(const heddle_graph *g, uint32_t node, const heddle_node_info *info, uint32_t k, char out[256]) {
  uint32_t found = 0;
  size_t n = 0;
  bool plain = heddle_graph_find_node(g, info->name, &found, NULL) == HEDDLE_OK && found == node;
  for (; info->name[n] != '\0' && n < 200; n++) {
    unsigned char c = (unsigned char)info->name[n];
    bool good = c > 32 && c != 127 && c != '/' && c != '\\' && c != '#' && !(n == 0 && c == '.');
    plain = plain && good;
    out[n] = good ? (char)c : '_';
  }
  if (info->name[n] != '\0' || n == 0) plain = false;
  if (plain) snprintf(out + n, 256 - n, "_%" PRIu32, k);
  else snprintf(out + n, 256 - n, "#%" PRIu32 "_%" PRIu32, node, k);
}

static int keep_nodes(session *s) {
  const heddle_graph *g = heddle_model_graph(s->model);
  uint32_t nodes = heddle_graph_node_count(g), files = 0;
  heddle_error err = {0};
  for (uint32_t i = 0; i < nodes; i++) {
    heddle_node_info info = {.struct_size = sizeof info};
    if (heddle_graph_node(g, i, &info, &err) != HEDDLE_OK) return fail("run", &err);
    if (strcmp(info.op, "null") == 0) continue;
    progress("node %" PRIu32 " of %" PRIu32, i + 1, nodes);
    for (uint32_t k = 0; k < info.n_outputs; k++) {
      char id[24], name[256], *path = NULL;
      heddle_tensor *t = NULL;
      snprintf(id, sizeof id, "#%" PRIu32, i);
      file_name(g, i, &info, k, name);
      if (heddle_executor_run_to(s->ex, id, k, &t, &err) != HEDDLE_OK) return fail("run", &err);
      int status = save(t, s->o->debug_dir, name, &path);
      heddle_tensor_release(t);
      free(path);
      if (status != DONE) return status;
      files++;
    }
  }
  progress_end();
  print("wrote the results of all nodes, %" PRIu32 " files, to %s\n", files, s->o->debug_dir);
  return DONE;
}

/* ---- times */

/* Whether an output of the run that was waited for last has the bytes of the first run's, which are kept in *first. */
static int compare_output(session *s, uint32_t i, uint64_t run, heddle_tensor **first) {
  heddle_error err = {0};
  heddle_io_info info = {.struct_size = sizeof info};
  heddle_tensor *now = NULL;
  if (heddle_executor_view_output(s->ex, i, &now, &err) != HEDDLE_OK) return fail("run", &err);
  int status = DONE;
  if (*first == NULL) {
    *first = now;
    return DONE; /* each run in flight has memory of its own */
  }
  uint64_t bytes = heddle_tensor_bytes(now);
  bool same = bytes == heddle_tensor_bytes(*first) &&
              (bytes == 0 || memcmp(heddle_tensor_data(now), heddle_tensor_data(*first), (size_t)bytes) == 0);
  if (!same && heddle_executor_output_info(s->ex, i, &info, &err) == HEDDLE_OK)
    status = fail_text("run",
                       "output '%s': run %" PRIu64 " in flight gave other bits than the first, of the same inputs (cpu "
                       "and sim always repeat their bits; other devices may not)",
                       info.name, run + 1);
  heddle_tensor_release(now);
  return status;
}

/* As many runs at once as the words say. */
static int run_in_flight(session *s) {
  heddle_error err = {0};
  const uint64_t n = s->o->in_flight;
  const uint32_t n_outputs = heddle_executor_output_count(s->ex);
  heddle_tensor **first = calloc((size_t)n_outputs + 1, sizeof(heddle_tensor *));
  if (first == NULL) return fail_text("run", "out of memory");
  int status = DONE;
  for (uint64_t k = 0; k < n && status == DONE; k++)
    if (heddle_executor_start(s->ex, &err) != HEDDLE_OK) status = fail("run", &err);
  const uint32_t n_compared = s->is_root ? n_outputs : 0;
  for (uint64_t k = 0; k < n && status == DONE; k++) {
    heddle_status r = heddle_executor_wait(s->ex, session_timeout(s), &err);
    if (r != HEDDLE_OK) status = session_run_failed(s, r, &err);
    for (uint32_t i = 0; i < n_compared && status == DONE; i++) status = compare_output(s, i, k, &first[i]);
  }
  for (uint32_t i = 0; i < n_outputs; i++) heddle_tensor_release(first[i]);
  free(first);
  return status;
}

static int run_once(session *s) {
  heddle_error err = {0};
  if (s->o->in_flight > 1) return run_in_flight(s);
  heddle_status r = heddle_executor_run(s->ex, session_timeout(s), &err);
  return r == HEDDLE_OK ? DONE : session_run_failed(s, r, &err);
}

/* The run before has paid for what is done once, such as compiling. */
static int trace_once(session *s) {
  heddle_error err = {0};
  if (heddle_trace_begin(s->ctx, &err) != HEDDLE_OK) return fail("run", &err);
  int status = run_once(s);
  if (status != DONE) return status;
  if (heddle_trace_write(s->ctx, s->o->trace, &err) != HEDDLE_OK) return fail("run", &err);
  print("wrote %s\n", s->o->trace);
  return DONE;
}

static int profile_it(session *s) {
  const options *o = s->o;
  profile p;
  int status = profile_take(s, o->profile_runs != NO_NUMBER ? o->profile_runs : PROFILE_RUNS, &p);
  if (status == DONE && o->profile) profile_print(&p);
  if (status == DONE && o->profile_json != NULL) status = profile_save(&p, o->model, o->profile_json);
  profile_finish(&p);
  return status;
}

/* What a policy on failed runs did; the log has the devices and their words. */
static void say_survived(const session *s) {
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  if (heddle_executor_get_stats(s->ex, &stats, NULL) != HEDDLE_OK || stats.retries + stats.failovers == 0) return;
  print("survived: %" PRIu64 " tries as it was, %" PRIu64 " new plans\n", stats.retries, stats.failovers);
}

typedef heddle_status (*state_call)(heddle_executor *ex, const char *path, heddle_error *err);

static int with_state(const session *s, const char *path, state_call call) {
  heddle_error err = {0};
  if (path == NULL || call(s->ex, path, &err) == HEDDLE_OK) return DONE;
  return fail("run", &err);
}

static int run_it(session *s) {
  const options *o = s->o;
  int status = session_executor(s, o->random);
  if (status == DONE) status = with_state(s, o->load_state, heddle_executor_load_state);
  for (uint32_t i = 0; status == DONE && i < heddle_executor_input_count(s->ex); i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    if (s->is_root && session_is_random(s, i) && heddle_executor_input_info(s->ex, i, &info, NULL) == HEDDLE_OK)
      print("input %s is made up\n", info.name);
  }
  if (status == DONE) status = run_once(s);
  if (status == DONE) status = with_state(s, o->save_state, heddle_executor_save_state);
  if (status == DONE) say_survived(s);
  if (status == DONE && s->is_root && o->in_flight > 1)
    print("%" PRIu64 " runs in flight gave the same bits\n", o->in_flight);
  for (uint32_t i = 0; status == DONE && s->is_root && i < heddle_executor_output_count(s->ex); i++)
    status = print_output(s, i);
  if (status == DONE && o->trace != NULL) status = trace_once(s);
  if (status == DONE && (o->profile || o->profile_json != NULL)) status = profile_it(s);
  if (status == DONE && o->debug_dir != NULL) status = keep_nodes(s);
  return status;
}

static int wrong_words(const options *o) {
  const char *why = NULL;
  if (o->profile_runs == NO_NUMBER) return DONE;
  if (o->profile_runs < 1 || o->profile_runs > PROFILE_MOST_RUNS) why = "--profile-runs is at least 1 and at most 1000";
  else if (!o->profile && o->profile_json == NULL)
    why = "--profile-runs is of --profile or --profile-json; give one too";
  if (why == NULL) return DONE;
  print_error("heddle run: %s\n", why);
  return WRONG_WORDS;
}

static int run_model_file(const options *o) {
  session s = {0};
  int status = wrong_words(o);
  if (status != DONE) return status;
  status = o->output_dir != NULL ? make_folder(o->output_dir) : DONE;
  if (status == DONE && o->debug_dir != NULL) status = make_folder(o->debug_dir);
  if (status == DONE) status = session_model(&s, "run", o);
  if (status == DONE) status = run_it(&s);
  return session_finish(&s, status);
}

const command run_command = {
    "run",
    "runs a model once and prints or keeps its outputs",
    "Runs a model once. Inputs are .npy files; outputs are printed, or written as .npy with --output-dir.",
    known,
    true,
    run_model_file};
