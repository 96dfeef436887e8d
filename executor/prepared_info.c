/* executor/prepared_info.c: what a package has prepared, as JSON text, and why it is not used. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/registry.h"
#include "executor/prepared.h"
#include "heddle/pack.h"

#if HEDDLE_HAS_PACKAGES

/* By the first word of a file's name, which its cache gives it. */
static const char *kind_of(const char *name) {
  static const char *const kinds[][2] = {{"weights-", "packed weights"},
                                         {"route-", "tests of routes"},
                                         {"costs-", "measured costs"},
                                         {"place-", "measured costs"},
                                         {"plan-", "plan"}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strncmp(name, kinds[i][0], strlen(kinds[i][0])) == 0) return kinds[i][1];
  const char *end = strrchr(name, '.');
  return end != NULL && strcmp(end, ".pipelines") == 0 ? "pipelines" : "programs";
}

/* Why a device is of no use; a new string, or NULL for null. */
static json_t *why_not(heddle_context *ctx, const heddle__prepared_device *was) {
  heddle_device *dev = NULL;
  heddle_error err = {0};
  const char *before, *now;
  if (ctx == NULL) return json_null();
  if (heddle_context_find_device(ctx, was->name, &dev, &err) != HEDDLE_OK) return json_string(err.text);
  const char *what = heddle__prepared_differs(was, dev, &before, &now);
  if (what == NULL) return json_null();
  char *text = heddle__format("its %s was '%s', and is '%s'", what, before, now);
  json_t *made = text != NULL ? json_string(text) : NULL;
  heddle__free(text);
  return made;
}

/* fits as executor/prepared.c has it: of its devices, those that are here are as they were, and one is. */
static json_t *devices_of(heddle_context *ctx, const heddle__prepared_target *t, bool *fits, json_t **why) {
  json_t *list = json_array();
  uint32_t same = 0, other = 0;
  for (uint32_t i = 0; i < t->n_devices; i++) {
    const heddle__prepared_device *d = &t->devices[i];
    heddle_device *dev;
    json_t *not = why_not(ctx, d);
    const bool here = ctx == NULL || heddle_context_find_device(ctx, d->name, &dev, NULL) == HEDDLE_OK;
    if (json_is_null(not )) same++;
    else if (here || *why == NULL) {
      json_decref(*why);
      *why = json_incref(not );
    }
    other += here && !json_is_null(not );
    json_array_append_new(list, json_pack("{s:s s:s s:s s:s s:o}", "name", d->name, "about", d->about, "driver",
                                          d->driver, "build", d->build, "why", not ));
  }
  *fits = same > 0 && other == 0;
  return list;
}

static json_t *files_of(const heddle__prepared *p, uint32_t target, uint64_t *bytes) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < p->n_files; i++) {
    const heddle__prepared_file *f = &p->files[i];
    if (f->target != target) continue;
    *bytes += f->bytes;
    json_array_append_new(
        list, json_pack("{s:s s:s s:I}", "name", f->name, "kind", kind_of(f->name), "bytes", (json_int_t)f->bytes));
  }
  return list;
}

static json_t *target_of(heddle_context *ctx, const heddle__prepared *p, uint32_t i, const json_t *whole) {
  bool fits;
  uint64_t bytes = 0;
  json_t *why = NULL, *devices = devices_of(ctx, &p->targets[i], &fits, &why);
  json_t *files = files_of(p, i, &bytes);
  if (!json_is_null(whole)) {
    json_decref(why);
    why = json_incref((json_t *)(uintptr_t)whole);
  }
  fits = fits && json_is_null(whole);
  if (fits) json_decref(why);
  return json_pack("{s:s s:b s:o s:I s:o s:o}", "for", p->targets[i].list, "fits", fits, "why",
                   fits || why == NULL ? json_null() : why, "bytes", (json_int_t)bytes, "devices", devices, "files",
                   files);
}

static json_t *describe(heddle_context *ctx, const heddle_params *params) {
  const heddle__prepared *p = params->carried != NULL ? params->carried->prepared : NULL;
  heddle_error err = {0};
  const char *value;
  if (p == NULL) return json_null();
  json_t *why = json_null(), *targets = json_array();
  if (ctx != NULL && heddle__config_get(ctx->config, "prepared", &value, NULL) && heddle__config_is_off(value))
    why = json_string("the setting 'prepared' is off");
  else if (heddle__prepared_check(ctx, params, &err) != HEDDLE_OK) why = json_string(err.text);
  for (uint32_t i = 0; p->why == NULL && i < p->n_targets; i++)
    json_array_append_new(targets, target_of(ctx, p, i, why));
  return json_pack("{s:s s:o s:o}", "heddle", p->version != NULL ? p->version : "", "why", why, "targets", targets);
}

heddle_status heddle_params_prepared(const heddle_params *params, heddle_context *ctx, char **out, heddle_error *err) {
  if (params == NULL || out == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "what was prepared is asked of params, into a place for a text");
  *out = NULL;
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  json_t *made = describe(ctx, params);
  char *text = made != NULL ? json_dumps(made, JSON_ENCODE_ANY) : NULL;
  json_decref(made);
  *out = text != NULL ? heddle__strdup(text) : NULL;
  free(text);
  return *out != NULL ? HEDDLE_OK : heddle__no_memory(err, "what a package has prepared");
}

#else

heddle_status heddle_params_prepared(const heddle_params *params, heddle_context *ctx, char **out, heddle_error *err) {
  (void)params, (void)ctx, (void)out;
  return heddle__left_out(err, "reader of packages", "HEDDLE_PACKAGES");
}

#endif
