/* core/left_out.c: what a list of devices lacks because a plugin's try failed or could not be made: not an error where the
 * list allows it, and nothing that its user could see otherwise. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/registry.h"

enum { MOST_NAME = 100 };

static bool any_untrusted(const heddle_context *ctx) {
  for (size_t i = 0; i < ctx->plugins.count; i++)
    if (atomic_load(&ctx->plugins.data[i]->seen) && ctx->plugins.data[i]->untrusted) return true;
  return false;
}

/* Whether a device of the list that may be missing, and is, would be one of the plugin's. Its name is copied. */
static bool is_missed(heddle_context *ctx, const heddle__plugin *p, const char *list, char name[MOST_NAME]) {
  for (const char *at = list;; at++) {
    while (*at == ' ') at++;
    size_t whole = strcspn(at, ","), n = whole;
    while (n > 0 && at[n - 1] == ' ') n--;
    if (n > 1 && n <= MOST_NAME && at[n - 1] == '?') {
      heddle_device *dev;
      size_t word = strcspn(at, ":?");
      memcpy(name, at, n - 1);
      name[n - 1] = '\0';
      if (word < n && heddle__may_be(p, at, word) && heddle_context_find_device(ctx, name, &dev, NULL) != HEDDLE_OK)
        return true;
    }
    at += whole;
    if (*at == '\0') return false;
  }
}

/* list is NULL for the default devices. each gets a sentence for every plugin that was left out. */
static heddle_status find_left_out(heddle_context *ctx, const char *list,
                                   heddle_status (*each)(void *user, heddle__plugin *p, const char *text,
                                                         heddle_error *err),
                                   void *user, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; i < ctx->plugins.count && s == HEDDLE_OK; i++) {
    heddle__plugin *p = ctx->plugins.data[i];
    char name[MOST_NAME] = "";
    if (!atomic_load(&p->seen) || !p->untrusted || (list != NULL && !is_missed(ctx, p, list, name))) continue;
    char *text = list != NULL ? heddle__format("%s was preferred and is left out: %s: %s", name, p->path, p->reason)
                              : heddle__format("the default devices leave out those of %s: %s", p->path, p->reason);
    if (text == NULL) return heddle__no_memory(err, "what a list of devices leaves out");
    s = each(user, p, text, err);
    heddle__free(text);
  }
  return s;
}

/* Once a plugin and context. */
static heddle_status warn(void *user, heddle__plugin *p, const char *text, heddle_error *err) {
  (void)user, (void)err;
  if (!atomic_exchange(&p->warned, true)) heddle__logf(&p->ctx->log, HEDDLE_LOG_WARN, "select", "%s", text);
  return HEDDLE_OK;
}

heddle_status heddle__left_out_warn(heddle_context *ctx, const char *list, heddle_error *err) {
  return any_untrusted(ctx) ? find_left_out(ctx, list, warn, NULL, err) : HEDDLE_OK;
}

static heddle_status append(void *user, heddle__plugin *p, const char *text, heddle_error *err) {
  char **all = user;
  (void)p;
  char *more = heddle__format("%s%s%s", *all, (*all)[0] != '\0' ? "\n" : "", text);
  if (more == NULL) return heddle__no_memory(err, "what a list of devices leaves out");
  heddle__free(*all);
  *all = more;
  return HEDDLE_OK;
}

heddle_status heddle_context_left_out(heddle_context *ctx, const char *list, char **out, heddle_error *err) {
  if (ctx == NULL || out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "left_out: context or out is NULL");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  char *text = heddle__strdup("");
  if (text == NULL) return heddle__no_memory(err, "what a list of devices leaves out");
  if (list == NULL) (void)heddle__config_get(ctx->config, "devices", &list, NULL);
  if (any_untrusted(ctx)) s = find_left_out(ctx, list, append, &text, err);
  if (s == HEDDLE_OK) *out = text;
  else heddle__free(text);
  return s;
}
