/* core/probe.c: the setting "probe"; probing, abilities and manifests are in core/probe/. */
#include "core/probe.h"

#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"

heddle_status heddle__probe_manifest(heddle_context *ctx, const char *path, heddle__manifest *out, char **real,
                                     heddle_error *err) {
  (void)ctx;
#if HEDDLE_HAS_PROBE
  return heddle__manifest_read(path, out, real, err);
#else
  (void)path, (void)out, (void)real;
  return heddle__left_out(err, "reader of plugins' manifests", "HEDDLE_PROBE");
#endif
}

heddle_status heddle__probe_before(heddle__plugin *p, heddle_error *err) {
  const char *value = "", *origin;
  if (heddle__config_get(p->ctx->config, "probe", &value, &origin)) {
    if (heddle__config_is_off(value)) return HEDDLE_OK;
    if (strcmp(value, "on") != 0 && strcmp(value, "1") != 0)
      return heddle__fail(err, HEDDLE_EINVAL, "setting 'probe' is '%.40s' (%s); it can be on or off", value, origin);
  }
#if HEDDLE_HAS_PROBE
  return heddle__probe_try(p, err);
#else
  if (strcmp(value, "on") == 0 || strcmp(value, "1") == 0)
    return heddle__left_out(err, "tries of plugins, which the setting 'probe' asks for", "HEDDLE_PROBE");
  return HEDDLE_OK;
#endif
}

heddle_status heddle__probe_after(heddle__plugin *p, heddle_error *err) {
  const char *folder;
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
#if HEDDLE_HAS_PROBE
  heddle__probe_loaded(p);
#endif
  return HEDDLE_OK;
}
