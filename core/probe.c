/* core/probe.c: the setting "probe", and the door to libheddle_probe.so, where probing, abilities and manifests are. */
#include "core/probe.h"

#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/beside.h"
#include "core/error.h"

static const heddle__probe_host host = {heddle__alloc,        heddle__free,        heddle__vlogf,
                                        heddle__config_get,   heddle__config_each, heddle__context_number,
                                        heddle__plugin_refuse};

/* NULL with why. Opened once a context. */
static const heddle__probe_table *library(heddle_context *ctx, heddle_error *err) {
  const void *table = NULL;
  if (ctx->probe == NULL && heddle__open_beside("libheddle_probe.so.0", "trying plugins and reading manifests need",
                                                "heddle_probe_entry", 0, &host, &table, err) == HEDDLE_OK)
    ctx->probe = table;
  return ctx->probe;
}

heddle_status heddle__probe_manifest(heddle_context *ctx, const char *path, heddle__manifest *out, char **real,
                                     heddle_error *err) {
  const heddle__probe_table *t = library(ctx, err);
  return t != NULL ? t->manifest(path, out, real, err) : HEDDLE_EUNSUPPORTED;
}

heddle_status heddle__probe_before(heddle__plugin *p, heddle_error *err) {
  const char *value, *origin;
  heddle_error why = {0, 0, ""};
  if (heddle__config_get(p->ctx->config, "probe", &value, &origin)) {
    if (heddle__config_is_off(value)) return HEDDLE_OK;
    if (strcmp(value, "on") != 0 && strcmp(value, "1") != 0)
      return heddle__fail(err, HEDDLE_EINVAL, "setting 'probe' is '%.40s' (%s); it can be on or off", value, origin);
  }
  const heddle__probe_table *t = library(p->ctx, &why);
  if (t != NULL) return t->before(p, err);
  if (why.status == HEDDLE_ENOMEM) return heddle__fail(err, HEDDLE_ENOMEM, "%s", why.text);
  p->untrusted = true;
  heddle__logf(&p->ctx->log, HEDDLE_LOG_WARN, "probe", "%s is not loaded, since it could not be tried: %s", p->path,
               why.text);
  return heddle__plugin_refuse(
      p, err, "it could not be tried: %s; it is not loaded untried unless the setting probe is off", why.text);
}

heddle_status heddle__probe_after(heddle__plugin *p, heddle_error *err) {
  const char *folder;
  heddle_error why = {0, 0, ""};
  heddle__free(p->abilities); /* of a try that lacked memory */
  p->abilities = NULL;
  if (heddle__config_get(p->ctx->config, "probe.cache_dir", &folder, NULL) && folder[0] == '/') {
    p->abilities = heddle__format("%s/abilities-%016llx.json", folder, heddle__probe_number(p->real));
    if (p->abilities == NULL) return heddle__no_memory(err, "what is known of a plugin's devices");
    if (access(p->abilities, F_OK) != 0) {
      heddle__free(p->abilities);
      p->abilities = NULL;
    }
  }
  if (p->abilities == NULL && p->drivers == NULL) return HEDDLE_OK;
  const heddle__probe_table *t = library(p->ctx, &why);
  if (t != NULL) t->after(p);
  else if (why.status == HEDDLE_ENOMEM) return heddle__fail(err, HEDDLE_ENOMEM, "%s", why.text);
  else
    heddle__logf(&p->ctx->log, HEDDLE_LOG_WARN, "probe", "what heddle check-plugin found of %s is not used: %s",
                 p->path, why.text);
  return HEDDLE_OK;
}
