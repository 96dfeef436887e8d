/* core/batch_left_out.c: the functions of heddle/batch.h in a build without batchers: none can be made. */
#include "core/parts.h"
#include "heddle/batch.h"

#if !HEDDLE_HAS_BATCH
static heddle_status none(heddle_error *err) {
  return heddle__left_out(err, "batchers", "HEDDLE_BATCH");
}

heddle_status heddle_batcher_create(heddle_model *m, const heddle_batcher_options *options, heddle_batcher **out,
                                    heddle_error *err) {
  (void)m, (void)options;
  if (out != NULL) *out = NULL;
  return none(err);
}

heddle_batcher *heddle_batcher_retain(heddle_batcher *b) {
  return b;
}

void heddle_batcher_release(heddle_batcher *b) {
  (void)b;
}

const char *heddle_batcher_input_name(const heddle_batcher *b, uint32_t i) {
  (void)b, (void)i;
  return NULL;
}

const char *heddle_batcher_output_name(const heddle_batcher *b, uint32_t i) {
  (void)b, (void)i;
  return NULL;
}

heddle_status heddle_batcher_submit(heddle_batcher *b, const heddle_batch_call *call, heddle_batch_request **out,
                                    heddle_error *err) {
  (void)b, (void)call;
  if (out != NULL) *out = NULL;
  return none(err);
}

heddle_status heddle_batcher_run(heddle_batcher *b, const heddle_batch_call *call, heddle_tensor **outputs, size_t n,
                                 heddle_error *err) {
  (void)b, (void)call;
  for (size_t i = 0; outputs != NULL && i < n; i++) outputs[i] = NULL;
  return none(err);
}

heddle_batch_request *heddle_batch_request_retain(heddle_batch_request *r) {
  return r;
}

void heddle_batch_request_release(heddle_batch_request *r) {
  (void)r;
}

heddle_status heddle_batch_request_wait(heddle_batch_request *r, uint64_t timeout_ns, heddle_error *err) {
  (void)r, (void)timeout_ns;
  return none(err);
}

heddle_status heddle_batch_request_cancel(heddle_batch_request *r) {
  (void)r;
  return HEDDLE_EUNSUPPORTED;
}

heddle_status heddle_batch_request_output(heddle_batch_request *r, uint32_t i, heddle_tensor **out, heddle_error *err) {
  (void)r, (void)i;
  if (out != NULL) *out = NULL;
  return none(err);
}

heddle_status heddle_batch_request_times(heddle_batch_request *r, heddle_batch_times *out, heddle_error *err) {
  (void)r, (void)out;
  return none(err);
}

heddle_status heddle_batcher_drain(heddle_batcher *b, uint64_t timeout_ns, heddle_error *err) {
  (void)b, (void)timeout_ns;
  return none(err);
}

heddle_status heddle_batcher_close(heddle_batcher *b, int cancel, uint64_t timeout_ns, heddle_error *err) {
  (void)b, (void)cancel, (void)timeout_ns;
  return none(err);
}

heddle_status heddle_batcher_get_stats(heddle_batcher *b, heddle_batcher_stats *out, heddle_error *err) {
  (void)b, (void)out;
  return none(err);
}
#endif
