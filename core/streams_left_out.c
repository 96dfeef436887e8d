/* core/streams_left_out.c: the functions about callers' streams in a build without them. */
#include "core/parts.h"
#include "heddle/executor.h"

#if !HEDDLE_HAS_STREAMS
static heddle_status none(heddle_error *err) {
  return heddle__left_out(err, "streams of callers", "HEDDLE_STREAMS");
}

heddle_status heddle_executor_use_stream(heddle_executor *ex, heddle_device *dev, uint64_t stream, heddle_error *err) {
  (void)ex, (void)dev, (void)stream;
  return none(err);
}

heddle_status heddle_tensor_after_stream(heddle_tensor *t, uint64_t stream, heddle_error *err) {
  (void)t, (void)stream;
  return none(err);
}

heddle_status heddle_tensor_before_stream(heddle_tensor *t, uint64_t stream, heddle_error *err) {
  (void)t, (void)stream;
  return none(err);
}

heddle_status heddle_tensor_wait(heddle_tensor *t, uint64_t timeout_ns, heddle_error *err) {
  (void)t, (void)timeout_ns;
  return none(err);
}
#endif
