/* core/described.c: the settings that a plugin describes in its root table, checked (plugins/common/check) and named as a
 * user writes them, and the chain of its extensions. With them stand those that the core itself reads for every plugin. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/registry.h"

#define IS_BUILT (HEDDLE_HAS_CONFIG && HEDDLE_ABI_MINOR >= 2)

#if IS_BUILT /* tests/abi builds this with the header of 1.0 too */

typedef struct heddle__described {
  heddle_psetting s; /* over a zeroed one; its strings are the plugin's */
  char *key;         /* with the plugin's name */
} described;

#define DEVICE HEDDLE_SETTING_DEVICE
static const heddle_psetting common[] = {
    {.type = HEDDLE_SETTING_SWITCH,
     .key = "regions",
     .default_value = "1",
     .help = "0 runs each node by itself: the plugin is asked for no regions of several nodes"},
    {.type = HEDDLE_SETTING_NUMBER,
     .flags = DEVICE,
     .key = "watchdog_ms",
     .default_value = "0",
     .help = "work that takes more milliseconds makes the device lost; 0: no limit",
     .high = 24 * 3600 * 1000},
    {.type = HEDDLE_SETTING_TEXT,
     .key = "layers",
     .default_value = "",
     .help = "layers before this plugin: check, fault, log, with commas between"},
};
enum { N_COMMON = sizeof common / sizeof common[0] };

static heddle_status add(heddle__plugin *p, const heddle_psetting *s, heddle_error *err) {
  described *d = &p->described[p->n_described];
  d->s = *s;
  d->key = heddle__format("%s.%s", p->name, s->key);
  if (d->key == NULL) return heddle__no_memory(err, "a plugin's settings");
  p->n_described++;
  return HEDDLE_OK;
}

heddle_status heddle__described_take(heddle__plugin *p, heddle_error *why) {
  const heddle_parray all = p->root.settings;
  char text[CONTRACT_TEXT];
  heddle_psetting one;
  heddle_status s = HEDDLE_OK;
  if (!contract_extensions(p->root.extensions, text) || !contract_setting_at(&all, all.count, &one, text))
    return heddle__fail(why, HEDDLE_EABI, "%s", text);
  heddle__described_forget(p);
  p->described = heddle__alloc((size_t)all.count + N_COMMON, sizeof *p->described);
  if (p->described == NULL) return heddle__no_memory(why, "a plugin's settings");
  p->describes = all.count > 0;
  for (uint64_t i = 0; i < all.count && s == HEDDLE_OK; i++) {
    s = contract_setting_at(&all, i, &one, text) ? HEDDLE_OK : heddle__fail(why, HEDDLE_EABI, "%s", text);
    if (s == HEDDLE_OK) s = add(p, &one, why);
  }
  for (int i = 0; i < N_COMMON && s == HEDDLE_OK; i++) s = add(p, &common[i], why);
  return s;
}

void heddle__described_forget(heddle__plugin *p) {
  for (size_t i = 0; i < p->n_described; i++) heddle__free(p->described[i].key);
  heddle__free(p->described);
  p->described = NULL;
  p->n_described = 0;
}

const char *heddle__described_key(const heddle__plugin *p, size_t i, bool *of_device) {
  if (i >= p->n_described) return NULL;
  *of_device = (p->described[i].s.flags & HEDDLE_SETTING_DEVICE) != 0;
  return p->described[i].key + strlen(p->name) + 1;
}

static heddle_setting_info info_of(const described *d) {
  static const char *const types[] = {"", "switch", "number", "word", "text", "path"};
  const heddle_psetting *s = &d->s;
  return (heddle_setting_info){.key = d->key,
                               .type = s->type < sizeof types / sizeof types[0] ? types[s->type] : "text",
                               .default_value = s->default_value,
                               .values = s->values != NULL ? s->values : "",
                               .help = s->help,
                               .low = s->low,
                               .high = s->high,
                               .per_device = (s->flags & HEDDLE_SETTING_DEVICE) != 0};
}

#else

heddle_status heddle__described_take(heddle__plugin *p, heddle_error *why) {
  (void)p, (void)why;
  return HEDDLE_OK;
}

void heddle__described_forget(heddle__plugin *p) {
  (void)p;
}

const char *heddle__described_key(const heddle__plugin *p, size_t i, bool *of_device) {
  (void)p, (void)i, (void)of_device;
  return NULL;
}

#endif

heddle_status heddle_context_described(heddle_context *ctx, size_t i, heddle_setting_info *out, heddle_error *err) {
  if (ctx == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "setting: context or out is NULL");
  heddle_status s = heddle__check_fork(err);
  if (s == HEDDLE_OK) s = heddle__want(ctx, NULL, 0, err);
  if (s != HEDDLE_OK) return s;
#if IS_BUILT
  for (size_t k = 0; k < ctx->plugins.count; k++) {
    const heddle__plugin *p = ctx->plugins.data[k];
    if (p->n_described > i) {
      const heddle_setting_info info = info_of(&p->described[i]);
      return heddle__info_give(out, &info, sizeof info, err);
    }
    i -= p->n_described;
  }
#else
  (void)i;
#endif
  return heddle__fail(err, HEDDLE_ENOTFOUND, "the plugins describe no more settings");
}
