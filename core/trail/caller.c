/* core/trail/caller.c: streams of a caller's beside tensors: what the caller has put into a stream comes before Heddle's use of
 * a tensor, or after it. */
#include "core/context.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/tensor.h"
#include "core/trail.h"
#include "core/watch.h"

#define SLICE_NS UINT64_C(20000000) /* how long a wait goes on before it looks at its time */

heddle_status heddle__caller_adopt(heddle_device *dev, uint64_t handle, heddle_pstream **out, heddle_error *err) {
  heddle_status s = heddle__device_check(dev, err);
  *out = NULL;
  if (s != HEDDLE_OK) return s;
  if (dev->t->stream.adopt == NULL || dev->t->event.create == NULL)
    return heddle__fail_on(
        dev->name, err, HEDDLE_EUNSUPPORTED,
        "the plugin of %s takes no streams of others: wait for your own work before Heddle's, and for "
        "Heddle's before yours",
        dev->name);
  s = dev->t->stream.adopt(dev->handle, handle, out, err);
  return s == HEDDLE_OK ? s : heddle__prefix_on(dev->name, err, s, "the stream is not one of %s: ", dev->name);
}

heddle_status heddle__caller_sync(heddle_device *dev, heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  const uint64_t start = heddle__now_ns();
  for (;;) {
    const uint64_t spent = heddle__now_ns() - start, left = spent < timeout_ns ? timeout_ns - spent : 0;
    heddle_status s = dev->t->stream.sync(stream, left < SLICE_NS ? left : SLICE_NS, err);
    if (s != HEDDLE_ETIMEOUT || left <= SLICE_NS) return s;
    s = heddle__watch_check("work of a caller's stream", err);
    if (s != HEDDLE_OK) return s;
  }
}

/* ---- tensors */

static heddle_status check(const heddle_tensor *t, heddle_error *err) {
  heddle_status s = heddle__check_fork(err);
  return s == HEDDLE_OK && t == NULL ? heddle__fail(err, HEDDLE_EINVAL, "the tensor is NULL") : s;
}

heddle_status heddle_tensor_after_stream(heddle_tensor *t, uint64_t handle, heddle_error *err) {
  heddle_status s = check(t, err);
  if (s != HEDDLE_OK || t->dev == NULL) return s;
  heddle_pstream *stream = NULL;
  heddle__trail *trail = NULL;
  s = heddle__caller_adopt(t->dev, handle, &stream, err);
  if (s == HEDDLE_OK) s = heddle__uses_caller(t->uses, handle, &trail, err);
  if (s == HEDDLE_OK) s = heddle__trail_reserve(trail, 0, t->dev, err);
  if (s == HEDDLE_OK) {
    s = heddle__trail_mark(trail, 0, stream, err);
    heddle__trail_submitted(trail);
  }
  heddle__trail_release(trail);
  if (stream != NULL) t->dev->t->stream.close(stream);
  return s;
}

heddle_status heddle_tensor_before_stream(heddle_tensor *t, uint64_t handle, heddle_error *err) {
  heddle_status s = check(t, err);
  if (s != HEDDLE_OK || t->dev == NULL) return s;
  heddle_pstream *stream = NULL;
  s = heddle__caller_adopt(t->dev, handle, &stream, err);
  if (s == HEDDLE_OK) s = heddle__prefix(err, heddle__uses_check(t->uses, NULL, true, err), "the tensor: ");
  if (s == HEDDLE_OK) s = heddle__uses_wait(t->uses, NULL, true, t->dev, stream, err);
  if (s == HEDDLE_OK) s = t->dev->t->stream.submit(stream, err);
  if (stream != NULL) t->dev->t->stream.close(stream);
  return s;
}

heddle_status heddle_tensor_wait(heddle_tensor *t, uint64_t timeout_ns, heddle_error *err) {
  heddle_status s = check(t, err);
  if (s != HEDDLE_OK || t->dev == NULL) return s;
  heddle_device *dev = t->dev;
  heddle_pstream *stream = NULL;
  s = heddle__device_check(dev, err);
  if (s == HEDDLE_OK) s = heddle__prefix(err, heddle__uses_check(t->uses, NULL, true, err), "the tensor: ");
  if (s == HEDDLE_OK) s = dev->t->stream.create(dev->handle, HEDDLE_STREAM_COPY, 0, &stream, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__uses_wait(t->uses, NULL, true, dev, stream, err);
  if (s == HEDDLE_OK) s = heddle__caller_sync(dev, stream, heddle__device_patience(dev, timeout_ns), err);
  dev->t->stream.close(stream);
  return s == HEDDLE_OK ? s : heddle__prefix_on(dev->name, err, s, "%s: the runs with a tensor: ", dev->name);
}
