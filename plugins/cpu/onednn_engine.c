/* oneDNN as an instance has it: the setting, the engine, and its errors in Heddle's words. Everything here is made when
 * the instance opens and only read from then on. */
#include "onednn_internal.h"

#include "plugins/common/setting.h"

heddle_status onednn_fail(dnnl_status_t status, const char *what, heddle_error *err) {
  heddle_status s = status == dnnl_out_of_memory   ? HEDDLE_ENOMEM
                    : status == dnnl_unimplemented ? HEDDLE_EUNSUPPORTED
                                                   : HEDDLE_EFAILED;
  if (status == dnnl_success) return HEDDLE_OK;
  return p_fail(err, s, (int32_t)status, "cpu:0: oneDNN: %s: status %d", what, (int)status);
}

heddle_status onednn_stopped(const onednn *self, heddle_error *err) {
  const heddle_host *host = self->host;
  const heddle_status s = HEDDLE_HAS(heddle_host, host, stop_requested) && host->stop_requested != NULL
                              ? host->stop_requested(host->ctx)
                              : HEDDLE_OK;
  if (s == HEDDLE_OK) return p_fail(err, HEDDLE_ETIMEOUT, 0, "it was stopped in the middle");
  return p_fail(err, s, 0,
                s == HEDDLE_ECANCELED ? "the run was cancelled while it was computed"
                                      : "the time of the run was over while it was computed");
}

/* *on is false for off. */
static heddle_status read_mode(const heddle_host *host, int *mode, bool *on, heddle_error *err) {
  char word[32] = "auto";
  *mode = ONEDNN_AUTO;
  *on = true;
  if (host->config(host->ctx, "onednn", word, sizeof word) < 0) return HEDDLE_OK;
  *on = !p_is_off(word);
  if (strcmp(word, "always") == 0) *mode = ONEDNN_ALWAYS;
  else if (*on && strcmp(word, "auto") != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "the setting cpu.onednn is auto, always or off, not '%s'", word);
  return HEDDLE_OK;
}

heddle_status onednn_open(const heddle_host *host, onednn **out, heddle_error *err) {
  int mode, winograd;
  bool on;
  *out = NULL;
  heddle_status s = read_mode(host, &mode, &on, err);
  if (s == HEDDLE_OK) s = winograd_read_mode(host, &winograd, err);
  if (s != HEDDLE_OK || !on) return s;
  onednn *self = host->alloc(host->ctx, sizeof *self, _Alignof(onednn));
  if (self == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for oneDNN's state");
  memset(self, 0, sizeof *self);
  self->host = host;
  self->mode = mode;
  self->winograd = winograd;
  s = onednn_threads_init(self, err);
  if (s == HEDDLE_OK) s = onednn_fail(dnnl_engine_create(&self->engine, dnnl_cpu, 0), "making the engine", err);
  if (s == HEDDLE_OK) s = onednn_keep_init(self, err);
  if (s == HEDDLE_OK) s = onednn_layout_init(self, err);
  if (s == HEDDLE_OK) *out = self;
  else onednn_close(self);
  return s;
}

void onednn_close(onednn *self) {
  if (self == NULL) return;
  onednn_layout_finish(self);
  onednn_keep_finish(self);
  if (self->engine != NULL) dnnl_engine_destroy(self->engine);
  self->host->free(self->host->ctx, self);
}

void onednn_describe(const onednn *self, char *text, uint64_t bytes) {
  const dnnl_version_t *v = dnnl_version();
  const size_t used = strlen(text);
  if (self != NULL && used < bytes)
    snprintf(text + used, bytes - used, ", oneDNN %d.%d.%d%s", v->major, v->minor, v->patch,
             self->bf16 ? ", bfloat16" : "");
}

bool onednn_is_fast(const onednn *self) {
  return self != NULL && self->bf16;
}
