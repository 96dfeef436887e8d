/* core/device_group.c: names that mean several devices in a list: "gpu", "gpu:1", "all", and patterns such as "sim:*". */
#include <fnmatch.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/registry.h"

enum { MOST_NAME = 100 };

bool heddle__is_group(const char *name, size_t n) {
  return (n == 3 && (memcmp(name, "gpu", 3) == 0 || memcmp(name, "all", 3) == 0)) ||
         (n > 4 && memcmp(name, "gpu:", 4) == 0) || memchr(name, '*', n) != NULL;
}

/* A name as text, of characters that names of devices have. gpu: the number behind "gpu:", or UINT32_MAX. */
static heddle_status read_name(const char *name, size_t n, char out[MOST_NAME], uint32_t *gpu, heddle_error *err) {
  bool good = n < MOST_NAME;
  for (size_t i = 0; i < n && good; i++)
    good = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') || strchr("_:*", name[i]) != NULL;
  *gpu = UINT32_MAX;
  if (good) {
    memcpy(out, name, n);
    out[n] = '\0';
    if (n > 4 && memcmp(name, "gpu:", 4) == 0 && strchr(out, '*') == NULL) {
      *gpu = 0;
      for (size_t i = 4; i < n && good; i++) {
        good = name[i] >= '0' && name[i] <= '9' && n <= 10;
        *gpu = *gpu * 10 + (uint32_t)(name[i] - '0');
      }
    }
  }
  if (good) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EINVAL, "'%.*s' names no devices; several are named \"gpu\", \"all\" or \"sim:*\"",
                      n < MOST_NAME ? (int)n : MOST_NAME, name);
}

/* Is it a pattern for the devices of one plugin? */
static bool is_of_plugin(const char *name) {
  const char *colon = strchr(name, ':'), *star = strchr(name, '*');
  return colon != NULL && star != NULL && colon < star;
}

/* Loads the plugins that may have such devices. */
static heddle_status want(heddle_context *ctx, const char *name, heddle_error *err) {
  size_t word = strcspn(name, ":");
  if (is_of_plugin(name)) {
    heddle_status s = heddle__want(ctx, name, word, err);
    for (size_t i = 0; i < ctx->plugins.count && s == HEDDLE_OK; i++) {
      const heddle__plugin *p = ctx->plugins.data[i];
      if (atomic_load(&p->seen) && p->reason == NULL && strlen(p->name) == word && memcmp(p->name, name, word) == 0)
        return HEDDLE_OK;
    }
    if (s != HEDDLE_OK) return s;
  }
  return heddle__want(ctx, NULL, 0, err); /* a file may be called otherwise than its devices are */
}

typedef struct list {
  heddle_device **data;
  size_t count;
} list;

static heddle_status add(list *l, heddle_device *d, heddle_error *err) {
  for (size_t i = 0; i < l->count; i++)
    if (l->data[i] == d) return HEDDLE_OK;
  heddle_device **grown = heddle__grow(l->data, l->count, l->count + 1, sizeof *grown);
  if (grown == NULL) return heddle__no_memory(err, "a list of devices");
  l->data = grown;
  l->data[l->count++] = d;
  return HEDDLE_OK;
}

/* "gpu": those of the default list, one API for each physical device. Devices of one plugin are in its order; all of them,
 * and those of several plugins, in the order of the default list, and then the rest. */
static heddle_status fill(heddle_context *ctx, const char *name, uint32_t gpu, list *l, heddle_error *err) {
  const bool gpus = strncmp(name, "gpu", 3) == 0 && strchr(name, '*') == NULL, all = strcmp(name, "all") == 0;
  heddle_status s = HEDDLE_OK;
  uint32_t number = 0;
  for (size_t i = 0; !is_of_plugin(name) && i < ctx->n_defaults && s == HEDDLE_OK; i++) {
    heddle_device *d = ctx->defaults[i];
    if (gpus ? heddle__is_gpu(d) && (gpu == UINT32_MAX || number++ == gpu) : all || fnmatch(name, d->name, 0) == 0)
      s = add(l, d, err);
  }
  for (size_t i = 0; !gpus && i < ctx->plugins.count && s == HEDDLE_OK; i++) {
    const heddle__plugin *p = ctx->plugins.data[i];
    if (!atomic_load(&p->seen) || p->reason != NULL) continue;
    for (uint32_t k = 0; k < p->n_devices && s == HEDDLE_OK; k++)
      if (all || fnmatch(name, p->devices[k]->name, 0) == 0) s = add(l, p->devices[k], err);
  }
  return s;
}

heddle_status heddle__group_of(heddle_context *ctx, const char *name, size_t n, heddle_device ***out, size_t *count,
                               heddle_error *err) {
  char text[MOST_NAME];
  uint32_t gpu;
  list l = {NULL, 0};
  *out = NULL;
  *count = 0;
  heddle_status s = read_name(name, n, text, &gpu, err);
  if (s == HEDDLE_OK) s = want(ctx, text, err);
  if (s == HEDDLE_OK) s = fill(ctx, text, gpu, &l, err);
  if (s != HEDDLE_OK) {
    heddle__free(l.data);
    return s;
  }
  *out = l.data;
  *count = l.count;
  return HEDDLE_OK;
}

heddle_status heddle__group_among(heddle_context *ctx, const char *name, heddle_device *const *devices, size_t n,
                                  size_t *index, heddle_error *err) {
  heddle_device **members = NULL;
  size_t count = 0;
  *index = n;
  heddle_status s = heddle__group_of(ctx, name, strlen(name), &members, &count, err);
  for (size_t i = 0; i < n && *index == n; i++)
    for (size_t k = 0; k < count; k++)
      if (members[k] == devices[i]) *index = i;
  heddle__free(members);
  return s;
}
