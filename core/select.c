/* core/select.c: which devices a list of names or DLPack's numbers mean, and which are used where none were named.
 * What is not there is an error that lists what there is, and why the rest is not. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "core/registry.h"

/* ---- the default list */

/* One physical device is used through the API that comes first here: DLPack type names. */
static const int32_t apis[] = {
    HEDDLE_DEVICE_CUDA,
    HEDDLE_DEVICE_ROCM,
    HEDDLE_DEVICE_VULKAN,
    HEDDLE_DEVICE_OPENCL,
};

bool heddle__is_gpu(const heddle_device *d) {
  static const int32_t others[] = {8, 14, 15}; /* of plugins that are not here: metal, oneapi, webgpu */
  bool is = false;
  for (size_t i = 0; i < sizeof apis / sizeof apis[0]; i++) is = is || d->desc.type == apis[i];
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) is = is || d->desc.type == others[i];
  return is && (d->desc.caps & HEDDLE_CAP_HOST_CORES) == 0;
}

/* Lower is sooner; what is none of them comes after, the cpu last. */
static int rank(const heddle_device *d) {
  int n = (int)(sizeof apis / sizeof apis[0]);
  for (int i = 0; i < n; i++)
    if (d->desc.type == apis[i]) return i;
  return strcmp(d->plugin->name, "cpu") == 0 ? n + 1 : n;
}

static int by_rank(const void *a, const void *b) {
  const heddle_device *x = *(heddle_device *const *)a, *y = *(heddle_device *const *)b;
  if (rank(x) != rank(y)) return rank(x) - rank(y);
  return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal; /* as they were found */
}

static bool same_physical(const heddle_pdevice_desc *a, const heddle_pdevice_desc *b) {
  static const uint8_t none[16] = {0};
  bool uuids = memcmp(a->uuid, none, sizeof none) != 0 && memcmp(b->uuid, none, sizeof none) != 0;
  if (uuids) return memcmp(a->uuid, b->uuid, sizeof none) == 0;
  return a->pci_bus != UINT32_MAX && a->pci_domain == b->pci_domain && a->pci_bus == b->pci_bus &&
         a->pci_device == b->pci_device && a->pci_function == b->pci_function;
}

/* Two ways to one device: by two plugins, or by two drivers of one. Devices of one plugin whose events reach each other
 * are parts of it. */
static bool is_again(const heddle_device *a, const heddle_device *b) {
  return (a->plugin != b->plugin || a->desc.event_domain != b->desc.event_domain) && same_physical(&a->desc, &b->desc);
}

heddle_status heddle__defaults_init(heddle_context *ctx, heddle_error *err) {
  size_t n = 0;
  for (size_t i = 0; i < ctx->plugins.count; i++) n += ctx->plugins.data[i]->n_devices;
  heddle_device **devices = heddle__alloc(n, sizeof *devices), **sorted = heddle__alloc(n, sizeof *sorted);
  heddle_device **defaults = heddle__alloc(n, sizeof *defaults);
  if (devices == NULL || sorted == NULL || defaults == NULL) {
    heddle__free(devices);
    heddle__free(sorted);
    heddle__free(defaults);
    return heddle__no_memory(err, "the list of devices");
  }
  ctx->devices = devices;
  ctx->defaults = defaults;
  for (size_t i = 0; i < ctx->plugins.count; i++)
    for (uint32_t k = 0; k < ctx->plugins.data[i]->n_devices; k++) {
      heddle_device *d = ctx->plugins.data[i]->devices[k];
      d->ordinal = (uint32_t)ctx->n_devices;
      sorted[ctx->n_devices] = ctx->devices[ctx->n_devices] = d;
      ctx->n_devices++;
    }
  qsort(sorted, n, sizeof *sorted, by_rank);
  for (size_t i = 0; i < n; i++) {
    heddle_device *d = sorted[i];
    const heddle_device *same = NULL;
    for (size_t k = 0; k < ctx->n_defaults && same == NULL; k++)
      if (is_again(ctx->defaults[k], d)) same = ctx->defaults[k];
    if (strcmp(d->plugin->name, "cpu") != 0 && (d->desc.caps & HEDDLE_CAP_HOST_CORES) != 0)
      snprintf(d->reason, sizeof d->reason, "it computes on the host's cores, and is used only when named");
    else if (same != NULL) snprintf(d->reason, sizeof d->reason, "it is the same physical device as %s", same->name);
    else {
      d->is_default = true;
      ctx->defaults[ctx->n_defaults++] = d;
    }
  }
  heddle__free(sorted);
  return HEDDLE_OK;
}

/* ---- words about what there is */

typedef struct words {
  char text[960];
  size_t used;
} words;

static void say(words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(words *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(w->text + w->used, sizeof w->text - w->used, format, args);
  va_end(args);
  if (n > 0) w->used += (size_t)n < sizeof w->text - w->used ? (size_t)n : sizeof w->text - w->used - 1;
}

static void say_what_there_is(words *w, const heddle_context *ctx) {
  say(w, "there %s ", ctx->n_devices == 1 ? "is" : "are");
  for (size_t i = 0; i < ctx->n_devices; i++) say(w, "%s%s", i > 0 ? ", " : "", ctx->devices[i]->name);
  if (ctx->n_devices == 0) say(w, "no devices");
  const char *comma = "; not used: ";
  for (size_t i = 0; i < ctx->plugins.count; i++) {
    const heddle__plugin *p = ctx->plugins.data[i];
    if (p->reason == NULL) continue;
    const char *slash = strrchr(p->path, '/');
    say(w, "%s%s (%.400s)", comma, slash != NULL && slash[1] != '\0' ? slash + 1 : p->path, p->reason);
    comma = ", ";
  }
  const char *value, *origin;
  if (heddle__config_get(ctx->config, "plugins", &value, &origin)) say(w, "; plugins is '%.80s' (%s)", value, origin);
  else if (ctx->plugins.count == 0) say(w, "; no plugin was found, and HEDDLE_PLUGIN_PATH can add folders");
}

static heddle_status not_there(heddle_context *ctx, const char *name, size_t n, const char *origin, heddle_error *err) {
  words w = {"", 0};
  heddle_status s = heddle__want(ctx, NULL, 0, err);
  if (s != HEDDLE_OK) return s;
  say(&w, "no device '%.*s'", n < 100 ? (int)n : 100, name);
  if (origin != NULL) say(&w, " (%s)", origin);
  say(&w, ": ");
  say_what_there_is(&w, ctx);
  char device[64];
  snprintf(device, sizeof device, "%.*s", n < sizeof device ? (int)n : (int)sizeof device - 1, name);
  return heddle__fail_on(device, err, HEDDLE_ENODEV, "%s", w.text);
}

/* ---- names */

/* "sim" is "sim:0". Fills *out with NULL where there is none; HEDDLE_EINVAL where it is no name at all. */
static heddle_status find_named(heddle_context *ctx, const char *name, size_t n, heddle_device **out,
                                heddle_error *err) {
  size_t word = 0, index = 0;
  *out = NULL;
  while (word < n && name[word] != ':') word++;
  bool good = word > 0 && name[0] >= 'a' && name[0] <= 'z';
  for (size_t i = 0; i < word && good; i++)
    good = name[i] == '_' || (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9');
  if (word < n) good = good && word + 1 < n && n - word <= 7;
  for (size_t i = word + 1; i < n && good; i++) {
    good = name[i] >= '0' && name[i] <= '9';
    index = index * 10 + (size_t)(name[i] - '0');
  }
  if (!good)
    return heddle__fail(err, HEDDLE_EINVAL, "'%.*s' is no device; devices are named like \"cpu\" or \"sim:1\"",
                        n < 100 ? (int)n : 100, name);
  for (int turn = 0; turn < 2 && *out == NULL; turn++) { /* a file may be called otherwise than its devices are */
    heddle_status s = heddle__want(ctx, turn == 0 ? name : NULL, word, err);
    if (s != HEDDLE_OK) return s;
    for (size_t i = 0; i < ctx->plugins.count; i++) {
      const heddle__plugin *p = ctx->plugins.data[i];
      if (!atomic_load(&p->seen) || p->reason != NULL || index >= p->n_devices) continue;
      if (strlen(p->name) == word && memcmp(p->name, name, word) == 0) *out = p->devices[index];
    }
  }
  return HEDDLE_OK;
}

/* The first GPU, or the one with a number. */
static heddle_status first_of(heddle_context *ctx, const char *name, heddle_device **out, heddle_error *err) {
  heddle_device **members = NULL;
  size_t count = 0;
  heddle_status s = heddle__group_of(ctx, name, strlen(name), &members, &count, err);
  if (count > 0) *out = members[0];
  heddle__free(members);
  return s;
}

heddle_status heddle_context_find_device(heddle_context *ctx, const char *name, heddle_device **out,
                                         heddle_error *err) {
  if (ctx == NULL || name == NULL || out == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "find_device: context, name or out is NULL");
  heddle_device *found = NULL;
  heddle_status s = heddle__check_fork(err);
  if (s == HEDDLE_OK && heddle__is_group(name, strlen(name)) && strchr(name, '*') == NULL && name[0] == 'g')
    s = first_of(ctx, name, &found, err);
  else if (s == HEDDLE_OK) s = find_named(ctx, name, strlen(name), &found, err);
  if (s != HEDDLE_OK) return s;
  if (found == NULL) return not_there(ctx, name, strlen(name), NULL, err);
  *out = found;
  return HEDDLE_OK;
}

/* ---- lists */

typedef struct result {
  heddle_device **out;
  size_t cap;
  size_t n;
  heddle_device **taken; /* n of them */
} result;

static heddle_status append(result *r, heddle_device *d, heddle_error *err) {
  for (size_t i = 0; i < r->n; i++)
    if (r->taken[i] == d) return HEDDLE_OK; /* named twice is named once */
  heddle_device **grown = heddle__grow(r->taken, r->n, r->n + 1, sizeof *grown);
  if (grown == NULL) return heddle__no_memory(err, "a list of devices");
  r->taken = grown;
  if (r->n < r->cap) r->out[r->n] = d;
  r->taken[r->n++] = d;
  return HEDDLE_OK;
}

/* One name of a list; *any is false where there is no such device. */
static heddle_status append_named(heddle_context *ctx, const char *name, size_t n, result *r, bool *any,
                                  heddle_error *err) {
  heddle_device *one = NULL, **several = NULL;
  size_t count = 0;
  heddle_status s = HEDDLE_OK;
  if (heddle__is_group(name, n)) s = heddle__group_of(ctx, name, n, &several, &count, err);
  else s = find_named(ctx, name, n, &one, err);
  *any = one != NULL || count > 0;
  if (one != NULL) s = append(r, one, err);
  for (size_t i = 0; i < count && s == HEDDLE_OK; i++) s = append(r, several[i], err);
  heddle__free(several);
  return s;
}

static heddle_status select_list(heddle_context *ctx, const char *list, const char *origin, result *r,
                                 heddle_error *err) {
  for (const char *p = list;; p++) {
    while (*p == ' ') p++;
    size_t whole = strcspn(p, ","), n = whole;
    while (n > 0 && p[n - 1] == ' ') n--;
    bool preferred = n > 0 && p[n - 1] == '?';
    if (preferred) n--;
    bool any;
    heddle_status s = append_named(ctx, p, n, r, &any, err);
    if (s != HEDDLE_OK) return heddle__prefix(err, s, "device list '%.200s' (%s): ", list, origin);
    if (!any && !preferred) return not_there(ctx, p, n, origin, err);
    if (!any) heddle__logf(&ctx->log, HEDDLE_LOG_INFO, "select", "'%.*s' was preferred and is not there", (int)n, p);
    p += whole;
    if (*p == '\0') return HEDDLE_OK;
  }
}

heddle_status heddle_context_select(heddle_context *ctx, const char *list, heddle_device **out, size_t cap, size_t *n,
                                    const char **origin, heddle_error *err) {
  if (ctx == NULL || n == NULL || (out == NULL && cap > 0))
    return heddle__fail(err, HEDDLE_EINVAL, "select: context, n or out is NULL");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  const char *from = "call";
  if (list == NULL && !heddle__config_get(ctx->config, "devices", &list, &from)) from = "default";
  if (list != NULL && heddle__config_is_off(list))
    return heddle__fail(err, HEDDLE_ENODEV, "devices are switched off: the list is '%s' (%s)", list, from);
  if (list == NULL) s = heddle__want(ctx, NULL, 0, err);
  if (s != HEDDLE_OK) return s;
  result r = {out, cap, 0, NULL};
  if (list != NULL) s = select_list(ctx, list, from, &r, err);
  for (size_t i = 0; list == NULL && i < ctx->n_defaults && s == HEDDLE_OK; i++) s = append(&r, ctx->defaults[i], err);
  heddle__free(r.taken);
  if (s != HEDDLE_OK) return s;
  if (r.n == 0) {
    words w = {"", 0};
    s = heddle__want(ctx, NULL, 0, err);
    if (s != HEDDLE_OK) return s;
    if (list != NULL) say(&w, "none of the devices '%.200s' (%s) is there: ", list, from);
    else say(&w, "no device is used by default: ");
    say_what_there_is(&w, ctx);
    return heddle__fail(err, HEDDLE_ENODEV, "%s", w.text);
  }
  if (HEDDLE_HAS_DLOPEN) s = heddle__left_out_warn(ctx, list, err); /* files that are not trusted */
  if (s != HEDDLE_OK) return s;
  heddle__want_tell(ctx);
  *n = r.n;
  if (origin != NULL) *origin = from;
  return HEDDLE_OK;
}

/* ---- numbers */

/* The device of a list, or NULL. Two plugins in one list make kDLExtDev ambiguous, and *other is the second. */
static heddle_device *numbered(heddle_device *const *list, size_t n, int32_t type, int32_t number,
                               heddle_device **other) {
  heddle_device *found = NULL;
  for (size_t i = 0; i < n; i++) {
    if (!heddle__is_type(list[i]->desc.type, type) || number < 0 || list[i]->index != (uint32_t)number) continue;
    if (found == NULL) found = list[i];
    else if (type == HEDDLE_DEVICE_EXT && list[i]->plugin != found->plugin && *other == NULL) *other = list[i];
  }
  return found;
}

static heddle_status numbered_in(heddle_device *const *list, size_t n, int32_t type, int32_t number,
                                 heddle_device **out, heddle_error *err) {
  heddle_device *other = NULL;
  *out = numbered(list, n, type, number, &other);
  if (other == NULL) return HEDDLE_OK;
  heddle_status s = heddle__fail(err, HEDDLE_EINVAL,
                                 "device %d of DLPack's type %d is ambiguous: it is %s and %s; name one of them in the "
                                 "setting devices (HEDDLE_DEVICES), or by its own name or type",
                                 (int)number, (int)type, (*out)->name, other->name);
  *out = NULL;
  return s;
}

heddle_status heddle_context_dlpack_device(heddle_context *ctx, int32_t type, int32_t number, heddle_device **out,
                                           heddle_error *err) {
  enum { MOST = 64 };
  heddle_device *chosen[MOST];
  size_t n = 0;
  if (ctx == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "context or out is NULL");
  *out = NULL;
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  if (heddle_context_select(ctx, NULL, chosen, MOST, &n, NULL, NULL) == HEDDLE_OK)
    s = numbered_in(chosen, n < MOST ? n : MOST, type, number, out, err);
  if (s != HEDDLE_OK || *out != NULL) return s;
  s = heddle__want(ctx, NULL, 0, err);
  if (s != HEDDLE_OK) return s;
  s = numbered_in(ctx->devices, ctx->n_devices, type, number, out, err);
  if (s != HEDDLE_OK || *out != NULL) return s;
  words w = {"", 0};
  say(&w, "there is no device %d of DLPack's type %d: ", (int)number, (int)type);
  say_what_there_is(&w, ctx);
  return heddle__fail(err, HEDDLE_ENODEV, "%s", w.text);
}
