/* core/wanted.c: loads plugins when their devices are asked for: drivers cost memory and time (one of them 60 MB), so that
 * who runs on cpu alone loads nothing else. Who lists what there is, or takes the default devices, loads all. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/registry.h"

bool heddle__may_be(const heddle__plugin *p, const char *word, size_t length) {
  char name[sizeof p->name];
  bool seen = atomic_load(&p->seen);
  if (!seen || p->name[0] == '\0') heddle__file_name(p, name);
  const char *is = seen && p->name[0] != '\0' ? p->name : name;
  return strlen(is) == length && memcmp(is, word, length) == 0;
}

/* Loads one after the other, in the order of the search, those that the word means; this thread is the loader. */
static heddle_status load(heddle_context *ctx, const char *word, size_t length, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < ctx->plugins.count && s == HEDDLE_OK; i++) {
    heddle__plugin *p = ctx->plugins.data[i];
    if (atomic_load(&p->seen) || (word != NULL && !heddle__may_be(p, word, length))) continue;
    s = heddle__plugin_load(p, err);
    if (s == HEDDLE_OK) atomic_store(&p->seen, true);
  }
  if (s == HEDDLE_OK && word == NULL) {
    s = heddle__defaults_init(ctx, err);
    if (s == HEDDLE_OK) atomic_store(&ctx->complete, true);
  }
  return s;
}

/* Whether there is nothing left to load for a word. */
static bool is_there(const heddle_context *ctx, const char *word, size_t length) {
  if (atomic_load_explicit(&ctx->complete, memory_order_acquire)) return true;
  for (size_t i = 0; i < ctx->plugins.count && word != NULL; i++)
    if (!atomic_load(&ctx->plugins.data[i]->seen) && heddle__may_be(ctx->plugins.data[i], word, length)) return false;
  return word != NULL;
}

heddle_status heddle__want(heddle_context *ctx, const char *word, size_t length, heddle_error *err) {
  if (is_there(ctx, word, length)) return HEDDLE_OK;
  pthread_mutex_lock(&ctx->lock);
  bool within = ctx->busy && pthread_equal(ctx->loader, pthread_self());
  while (ctx->busy && !within) pthread_cond_wait(&ctx->cond, &ctx->lock);
  bool mine = !within && !is_there(ctx, word, length);
  if (mine) {
    ctx->busy = true;
    ctx->loader = pthread_self();
  }
  pthread_mutex_unlock(&ctx->lock);
  if (!mine) return HEDDLE_OK;
  heddle_status s = load(ctx, word, length, err);
  pthread_mutex_lock(&ctx->lock);
  ctx->busy = false;
  pthread_cond_broadcast(&ctx->cond);
  pthread_mutex_unlock(&ctx->lock);
  return s;
}

heddle_status heddle__want_first(heddle_context *ctx, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  const char *value;
  bool all = heddle__config_get(ctx->config, "layers", &value, NULL), left = false;
  for (size_t i = 0; i < ctx->plugins.count && s == HEDDLE_OK; i++) {
    heddle__plugin *p = ctx->plugins.data[i];
    char key[sizeof p->name + 8];
    heddle__file_name(p, key);
    bool now = all || p->reason != NULL || key[0] == '\0' ||
               heddle__config_get(ctx->config, strcat(key, ".layers"), &value, NULL);
    left = left || !now;
    if (!now) continue;
    s = heddle__plugin_load(p, err);
    if (s == HEDDLE_OK) atomic_store(&p->seen, true);
  }
  return s == HEDDLE_OK && !left ? heddle__want(ctx, NULL, 0, err) : s;
}

void heddle__want_tell(heddle_context *ctx) {
  if (atomic_load(&ctx->complete) || atomic_exchange(&ctx->reported, true)) return;
  for (size_t i = 0; i < ctx->plugins.count; i++) {
    const heddle__plugin *p = ctx->plugins.data[i];
    if (!atomic_load(&p->seen))
      heddle__logf(&ctx->log, HEDDLE_LOG_INFO, "loader", "not loaded: %s: its devices have not been requested",
                   p->path);
  }
}
