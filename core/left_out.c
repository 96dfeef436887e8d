/* core/left_out.c: what a list of devices lacks: devices that it prefers and that are missing, and default devices whose
 * plugin's try failed or could not be made. Not an error, and nothing that its user could see otherwise. */
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

typedef heddle_status (*each_fn)(void *user, heddle__plugin *p, const char *text, heddle_error *err);

/* each gets what was made, which is freed. */
static heddle_status give(char *text, heddle__plugin *p, each_fn each, void *user, heddle_error *err) {
  heddle_status s =
      text != NULL ? each(user, p, text, err) : heddle__no_memory(err, "what a list of devices leaves out");
  heddle__free(text);
  return s;
}

/* Why a device that was preferred is missing: for each plugin that may be its own. */
static heddle_status explain(heddle_context *ctx, const char *name, each_fn each, void *user, heddle_error *err) {
  const char *const begin = "was preferred and is left out";
  heddle_status s = HEDDLE_OK;
  bool found = false;
  for (size_t i = 0; i < ctx->plugins.count && s == HEDDLE_OK; i++) {
    heddle__plugin *p = ctx->plugins.data[i];
    if (!heddle__may_be(p, name, strcspn(name, ":")) || !atomic_load(&p->seen)) continue;
    found = true;
    s = give(p->reason != NULL ? heddle__format("%s %s: %s: %s", name, begin, p->path, p->reason)
                               : heddle__format("%s %s: plugin %s has %u device%s here", name, begin, p->name,
                                                (unsigned)p->n_devices, p->n_devices == 1 ? "" : "s"),
             p, each, user, err);
  }
  return found || s != HEDDLE_OK
             ? s
             : give(heddle__format("%s %s: no plugin has that name", name, begin), NULL, each, user, err);
}

/* Why there is no GPU: the reasons of the plugins that are not used. */
static heddle_status explain_gpu(heddle_context *ctx, const char *name, each_fn each, void *user, heddle_error *err) {
  char *text = heddle__format("%s was preferred and is left out: there is no such GPU", name);
  for (size_t i = 0; i < ctx->plugins.count && text != NULL; i++) {
    const heddle__plugin *p = ctx->plugins.data[i];
    if (!atomic_load(&p->seen) || p->reason == NULL) continue;
    char *more = heddle__format("%s; %s: %s", text, p->path, p->reason);
    heddle__free(text);
    text = more;
  }
  return give(text, NULL, each, user, err);
}

/* Is there a device of a name? */
static bool is_there(heddle_context *ctx, const char *name) {
  heddle_device *dev, **members = NULL;
  size_t count = 0;
  if (!heddle__is_group(name, strlen(name))) return heddle_context_find_device(ctx, name, &dev, NULL) == HEDDLE_OK;
  (void)heddle__group_of(ctx, name, strlen(name), &members, &count, NULL);
  heddle__free(members);
  return count > 0;
}

/* The devices of a list that may be missing, and are. */
static heddle_status explain_list(heddle_context *ctx, const char *list, each_fn each, void *user, heddle_error *err) {
  char name[MOST_NAME];
  for (const char *at = list;; at++) {
    while (*at == ' ') at++;
    size_t whole = strcspn(at, ","), n = whole;
    while (n > 0 && at[n - 1] == ' ') n--;
    if (n > 1 && n <= MOST_NAME && at[n - 1] == '?') {
      memcpy(name, at, n - 1);
      name[n - 1] = '\0';
      const bool gpu = strncmp(name, "gpu", 3) == 0 && heddle__is_group(name, n - 1) && strchr(name, '*') == NULL;
      heddle_status s = is_there(ctx, name) ? HEDDLE_OK
                        : gpu               ? explain_gpu(ctx, name, each, user, err)
                                            : explain(ctx, name, each, user, err);
      if (s != HEDDLE_OK) return s;
    }
    at += whole;
    if (*at == '\0') return HEDDLE_OK;
  }
}

/* list is NULL for the default devices. each gets a sentence for everything that was left out, with its plugin or NULL. */
static heddle_status find_left_out(heddle_context *ctx, const char *list, each_fn each, void *user, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (list != NULL) return strchr(list, '?') != NULL ? explain_list(ctx, list, each, user, err) : HEDDLE_OK;
  for (size_t i = 0; i < ctx->plugins.count && s == HEDDLE_OK; i++) {
    heddle__plugin *p = ctx->plugins.data[i];
    if (!atomic_load(&p->seen) || !p->untrusted) continue;
    s = give(heddle__format("the default devices leave out those of %s: %s", p->path, p->reason), p, each, user, err);
  }
  return s;
}

/* Once a plugin and context; what is plainly not there is in the log as information. */
static heddle_status warn(void *user, heddle__plugin *p, const char *text, heddle_error *err) {
  (void)user, (void)err;
  if (p != NULL && p->untrusted && !atomic_exchange(&p->warned, true))
    heddle__logf(&p->ctx->log, HEDDLE_LOG_WARN, "select", "%s", text);
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
  s = find_left_out(ctx, list, append, &text, err);
  if (s == HEDDLE_OK) *out = text;
  else heddle__free(text);
  return s;
}
