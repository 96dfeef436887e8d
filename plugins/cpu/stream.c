/* Streams of an inline device: all work is finished when the call that brought it returns, so there is nothing to
 * submit, to wait for or to ask. */
#include "cpu.h"

static void stream_close(heddle_pstream *stream) {
  if (stream == NULL) return;
  heddle_pdevice *dev = stream->dev;
  cpu_count(&dev->live_objects, -1);
  dev->host->free(dev->host->ctx, stream);
}

static heddle_status stream_create(heddle_pdevice *dev, uint32_t kind, int32_t priority, heddle_pstream **out,
                                   heddle_error *err) {
  void *stream = NULL;
  (void)kind, (void)priority;
  heddle_status s = cpu_new(dev->host, sizeof **out, "a stream", &stream, err);
  if (s != HEDDLE_OK) return s;
  *out = stream;
  (*out)->dev = dev;
  cpu_count(&dev->live_objects, 1);
  return HEDDLE_OK;
}

static heddle_status stream_submit(heddle_pstream *stream, heddle_error *err) {
  (void)stream, (void)err;
  return HEDDLE_OK;
}

static heddle_status stream_sync(heddle_pstream *stream, uint64_t timeout_ns, heddle_error *err) {
  (void)stream, (void)timeout_ns, (void)err;
  return HEDDLE_OK;
}

static heddle_status stream_query(heddle_pstream *stream, heddle_error *err) {
  (void)stream, (void)err;
  return HEDDLE_OK;
}

const heddle_stream_table cpu_stream_table = {
    .struct_size = sizeof cpu_stream_table,
    .close = stream_close,
    .create = stream_create,
    .submit = stream_submit,
    .sync = stream_sync,
    .query = stream_query,
};
