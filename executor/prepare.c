/* executor/prepare.c: see prepare.h. */
#define _GNU_SOURCE /* secure_getenv, mkdtemp */
#include "executor/prepare.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/registry.h"
#include "executor/model.h"
#include "graph/prepared.h"

enum { MOST_DEPTH = 4, MOST_OPEN = 8 };

typedef struct preparation {
  char *folder, *plain; /* of it; the package without what is prepared */
  json_t *targets;
  char **paths; /* of files to be carried */
  uint32_t *target_of;
  uint32_t count, room;
} preparation;

/* ---- running */

/* The numbers of one run for the dimensions that have names: position is which of several numbers of a name. */
typedef struct numbers {
  const char *const *dims;
  size_t n, position;
} numbers;

/* The number of "NAME=NUMBER"; -1: it is none. */
static int64_t number_in(const char *dim, const char *name) {
  const size_t length = strlen(name);
  char *end = NULL;
  if (strncmp(dim, name, length) != 0 || dim[length] != '=') return -1;
  const long long value = strtoll(dim + length + 1, &end, 10);
  return end == dim + length + 1 || *end != '\0' || value < 0 ? -1 : (int64_t)value;
}

static int64_t number_of(const numbers *given, const char *name) {
  size_t seen = 0;
  int64_t found = -1;
  for (size_t i = 0; name != NULL && i < given->n && seen <= given->position; i++) {
    const int64_t value = number_in(given->dims[i], name);
    if (value >= 0) found = value, seen++;
  }
  return found;
}

/* How many runs there are: the most numbers of a name, and 1 without any. HEDDLE_EINVAL: no input has a dimension of a name. */
static heddle_status count_runs(const heddle_graph *g, const heddle_pack_options *o, size_t *out, heddle_error *err) {
  *out = 1;
  for (size_t i = 0; i < o->n_dims; i++) {
    const char *equals = o->dims[i] != NULL ? strchr(o->dims[i], '=') : NULL;
    char name[200];
    size_t same = 0;
    bool known = false;
    if (equals == NULL || (size_t)(equals - o->dims[i]) >= sizeof name)
      return heddle__fail(err, HEDDLE_EINVAL, "a number for a dimension is NAME=NUMBER");
    memcpy(name, o->dims[i], (size_t)(equals - o->dims[i]));
    name[equals - o->dims[i]] = '\0';
    if (number_in(o->dims[i], name) < 0)
      return heddle__fail(err, HEDDLE_EINVAL, "dimension '%.100s': it needs a number", name);
    for (size_t k = 0; k < o->n_dims; k++) same += o->dims[k] != NULL && number_in(o->dims[k], name) >= 0;
    for (uint32_t k = 0; k < heddle_graph_input_count(g) && !known; k++) {
      heddle_value_info v = {.struct_size = sizeof v};
      if (heddle_graph_input(g, k, &v, NULL) != HEDDLE_OK || v.ndim == UINT32_MAX || v.symbols == NULL) continue;
      for (uint32_t d = 0; d < v.ndim && !known; d++) known = v.symbols[d] != NULL && strcmp(v.symbols[d], name) == 0;
    }
    if (!known) return heddle__fail(err, HEDDLE_EINVAL, "no input has a dimension '%.100s'", name);
    if (same > *out) *out = same;
  }
  return HEDDLE_OK;
}

static heddle_status give_zeros(heddle_executor *ex, const heddle_graph *g, uint32_t i, const numbers *given,
                                heddle_error *err) {
  heddle_io_info info = {.struct_size = sizeof info};
  heddle_value_info value = {.struct_size = sizeof value};
  heddle_tensor *t = NULL;
  int64_t shape[HEDDLE__MAX_NDIM];
  heddle_status s = heddle_executor_input_info(ex, i, &info, err);
  if (s != HEDDLE_OK || info.is_param != 0) return s;
  s = heddle_graph_input(g, i, &value, err);
  if (s != HEDDLE_OK) return s;
  bool is_fixed = info.ndim <= HEDDLE__MAX_NDIM;
  for (uint32_t k = 0; is_fixed && k < info.ndim; k++) {
    const bool is_open = info.shape[k] < 0 && value.ndim == info.ndim && value.symbols != NULL;
    shape[k] = is_open ? number_of(given, value.symbols[k]) : info.shape[k];
    is_fixed = shape[k] >= 0;
  }
  if (!is_fixed)
    return heddle__fail(
        err, HEDDLE_EINVAL,
        "nothing can be prepared for an input without a fixed shape, '%.100s'; '--dim NAME=NUMBER' gives a "
        "dimension with a name a number, and 'heddle convert --dim' fixes it",
        info.name);
  s = heddle_tensor_create(NULL, info.dtype, shape, info.ndim, &t, err);
  if (s == HEDDLE_OK) memset(heddle_tensor_data(t), 0, heddle_tensor_bytes(t));
  if (s == HEDDLE_OK) s = heddle_executor_set_input(ex, i, t, err);
  heddle_tensor_release(t);
  return s;
}

static heddle_status run_once(heddle_model *m, const numbers *given, heddle_error *err) {
  heddle_executor *ex = NULL;
  heddle_status s = heddle_executor_create(m, &ex, err);
  for (uint32_t i = 0; s == HEDDLE_OK && i < heddle_executor_input_count(ex); i++)
    s = give_zeros(ex, m->graph, i, given, err);
  if (s == HEDDLE_OK) s = heddle_executor_run(ex, HEDDLE_FOREVER, err);
  heddle_executor_release(ex);
  return s;
}

static heddle_status describe(preparation *p, const heddle_model *m, const char *list, heddle_error *err) {
  json_t *devices = json_array();
  int code = devices != NULL ? 0 : -1;
  for (uint32_t i = 0; i < m->n_devices && code == 0; i++) {
    const heddle_device *d = m->devices[i];
    const char *build = d->plugin->root.build != NULL ? d->plugin->root.build : "";
    code = json_array_append_new(devices, json_pack("{s:s s:s s:s s:s}", "name", d->name, "about", d->desc.name,
                                                    "driver", d->desc.driver, "build", build));
  }
  json_t *one = json_pack("{s:s s:o}", "for", list, "devices", devices);
  if (code == 0) code = json_array_append_new(p->targets, one);
  else json_decref(one);
  return code == 0
             ? HEDDLE_OK
             : heddle__fail(err, HEDDLE_EFAILED, "the devices %s cannot be described: no UTF-8, or no memory", list);
}

/* With several devices the model is placed automatically too, which measures; its plan is kept when what was measured is
 * known, as a new process knows it. Each run has a model of its own, as such a process has. */
static heddle_status make_and_run(preparation *p, heddle_context *ctx, heddle_graph *graph, heddle_params *params,
                                  const char *list, const heddle_pack_options *given, heddle_error *err) {
  enum { PREFERENCE, MEASURING, AUTO, WAYS };
  const char *plans = params->carried->plans;
  size_t n_runs;
  bool is_mixed = false;
  heddle_status s = count_runs(graph, given, &n_runs, err);
  for (size_t k = 0; k < WAYS * n_runs && s == HEDDLE_OK; k++) {
    const numbers one = {given->dims, given->n_dims, k / WAYS};
    heddle_model_options o = {.struct_size = sizeof o, .devices = list, .memory = given->memory};
    heddle_model *m = NULL;
    if (k % WAYS != PREFERENCE && !is_mixed) continue;
    if (k % WAYS != PREFERENCE) o.flags = HEDDLE_MODEL_PLACE_AUTO;
    params->carried->plans = k % WAYS == MEASURING ? NULL : plans;
    s = heddle_model_create(ctx, graph, params, &o, &m, err);
    if (s == HEDDLE_OK && k == 0) s = describe(p, m, list, err);
    if (s == HEDDLE_OK) s = run_once(m, &one, err);
    is_mixed = s == HEDDLE_OK && strchr(list, ',') != NULL && m->n_devices > 1;
    heddle_model_release(m);
  }
  params->carried->plans = plans;
  return s;
}

static heddle_status prepare_for(preparation *p, const char *list, const char *home, const heddle_pack_options *o,
                                 heddle_error *err) {
  static const char *const keys[] = {"weights.cache_dir", "routes.cache_dir", "place.cache_dir"};
  enum { KEYS = sizeof keys / sizeof keys[0], PLANS = KEYS };
  heddle_setting settings[KEYS + 2] = {{"cache_home", home}, {"prepare", "1"}};
  char *folders[KEYS + 1] = {NULL};
  heddle_context *ctx = NULL;
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  heddle_status s = HEDDLE_OK;
  for (int i = 0; i <= KEYS && s == HEDDLE_OK; i++) {
    folders[i] = heddle__format("%s/own%d", home, i);
    if (folders[i] == NULL) s = heddle__no_memory(err, "a path");
    else if (i < KEYS) settings[i + 2] = (heddle_setting){keys[i], folders[i]};
    else if ((mkdir(home, 0700) != 0 && errno != EEXIST) || mkdir(folders[i], 0700) != 0)
      s = heddle__fail(err, HEDDLE_EIO, "the folder %s could not be made: %s", folders[i], strerror(errno));
  }
  if (s == HEDDLE_OK) s = heddle_context_create(settings, KEYS + 2, NULL, NULL, &ctx, err);
  if (s == HEDDLE_OK) s = heddle_graph_load(p->plain, NULL, &graph, err);
  if (s == HEDDLE_OK) s = heddle_params_load(p->plain, NULL, &params, err);
  if (s == HEDDLE_OK) {
    params->carried->is_made = true;
    params->carried->plans = folders[PLANS];
    s = make_and_run(p, ctx, graph, params, list, o, err);
    if (s != HEDDLE_OK) heddle__prefix(err, s, "for %.100s: ", list);
  }
  heddle_params_release(params);
  heddle_graph_release(graph);
  heddle_context_release(ctx); /* devices write their caches when they are closed */
  for (int i = 0; i <= KEYS; i++) heddle__free(folders[i]);
  return s;
}

/* ---- files */

static bool is_wanted(const char *name) {
  return name[0] != '.' && strncmp(name, "probe-", 6) != 0 && strncmp(name, "abilities-", 10) != 0;
}

/* Takes the path over. */
static heddle_status add(preparation *p, char *path, uint32_t target, heddle_error *err) {
  if (p->count == p->room) {
    const uint32_t room = p->room == 0 ? 32 : 2 * p->room;
    char **paths = heddle__grow((void *)p->paths, p->room, room, sizeof *paths);
    if (paths != NULL) p->paths = paths;
    uint32_t *targets = paths != NULL ? heddle__grow(p->target_of, p->room, room, sizeof *targets) : NULL;
    if (targets == NULL) {
      heddle__free(path);
      return heddle__no_memory(err, "a list of files");
    }
    p->target_of = targets;
    p->room = room;
  }
  p->paths[p->count] = path;
  p->target_of[p->count++] = target;
  return HEDDLE_OK;
}

static heddle_status gather(preparation *p, const char *folder, uint32_t target, int depth, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  DIR *dir = opendir(folder);
  if (dir == NULL) return HEDDLE_OK; /* nothing was made */
  for (const struct dirent *e; s == HEDDLE_OK && (e = readdir(dir)) != NULL;) {
    struct stat info;
    if (!is_wanted(e->d_name)) continue;
    char *path = heddle__format("%s/%s", folder, e->d_name);
    if (path == NULL) s = heddle__no_memory(err, "a path");
    else if (lstat(path, &info) == 0 && S_ISREG(info.st_mode)) {
      s = add(p, path, target, err);
      continue;
    } else if (S_ISDIR(info.st_mode) && depth < MOST_DEPTH) {
      s = gather(p, path, target, depth + 1, err);
    }
    heddle__free(path);
  }
  closedir(dir);
  return s;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at) {
  (void)info, (void)kind, (void)at;
  (void)remove(path);
  return 0;
}

static heddle_status begin(preparation *p, heddle_error *err) {
  const char *temporary = secure_getenv("TMPDIR");
  p->folder = heddle__format("%s/heddle-pack-XXXXXX", temporary != NULL && temporary[0] == '/' ? temporary : "/tmp");
  p->targets = json_array();
  if (p->folder == NULL || p->targets == NULL) return heddle__no_memory(err, "what is packed");
  if (mkdtemp(p->folder) == NULL) {
    heddle_status s = heddle__fail(err, HEDDLE_EIO, "the folder %s could not be made: %s", p->folder, strerror(errno));
    heddle__free(p->folder); /* there is nothing to be removed */
    p->folder = NULL;
    return s;
  }
  p->plain = heddle__format("%s/model.heddle", p->folder);
  return p->plain != NULL ? HEDDLE_OK : heddle__no_memory(err, "a path");
}

static void end(preparation *p) {
  if (p->folder != NULL) (void)nftw(p->folder, remove_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS);
  for (uint32_t i = 0; i < p->count; i++) heddle__free(p->paths[i]);
  heddle__free((void *)p->paths);
  heddle__free(p->target_of);
  heddle__free(p->folder);
  heddle__free(p->plain);
  json_decref(p->targets);
}

heddle_status heddle__prepare(const char *path, const char *text, size_t bytes, const heddle_params *params,
                              const heddle_pack_options *o, heddle_error *err) {
  preparation p = {.folder = NULL};
  heddle__package_extra extra = {.paths = NULL};
  heddle_status s = begin(&p, err);
  extra.targets = p.targets;
  if (s == HEDDLE_OK) s = heddle__package_write(p.plain, text, bytes, params, &extra, err);
  for (size_t i = 0; i < o->n_targets && s == HEDDLE_OK; i++) {
    char *home = heddle__format("%s/%u", p.folder, (unsigned)i);
    s = home != NULL ? prepare_for(&p, o->targets[i], home, o, err) : heddle__no_memory(err, "a path");
    if (s == HEDDLE_OK) s = gather(&p, home, (uint32_t)i, 0, err);
    heddle__free(home);
  }
  extra.paths = (const char *const *)p.paths;
  extra.target_of = p.target_of;
  extra.n_files = p.count;
  if (s == HEDDLE_OK) s = heddle__package_write(path, text, bytes, params, &extra, err);
  end(&p);
  return s;
}
