/* A queue for devices whose driver has only synchronous calls. A plugin gives functions that copy and execute, and return
 * when that is done (queue_driver); the files of this folder make an asynchronous device of them: streams, which a thread
 * of the device works off in order, events, fences, PINNED memory, captures, failures of work, loss, reset, and memory
 * that is kept while a hung device may use it. The plugin writes its root table, device_describe, the pure functions of
 * its operators, and the driver. docs/plugin-guide-2.md builds one.
 *
 * The instance of the plugin begins with a queue_instance. The types heddle_pdevice, heddle_pbuffer, heddle_pstream,
 * heddle_pevent, heddle_pop, heddle_plaunch and heddle_pgraph are this folder's. device_describe sets no
 * HEDDLE_CAP_INLINE, sets HEDDLE_CAP_WAIT_BEFORE_SIGNAL if the plugin likes, the same alignment and max_buffer_bytes as
 * the driver, and a different event_domain for each device, such as its index. */
#ifndef HEDDLE_PLUGINS_COMMON_QUEUE_QUEUE_H
#define HEDDLE_PLUGINS_COMMON_QUEUE_QUEUE_H

#include "plugins/common/perror.h"

#include <stdbool.h>

/* Memory of the device from an offset on: memory is what queue_driver.alloc gave, NULL where an operand has no bytes. */
typedef struct queue_slice {
  void *memory;
  uint64_t offset;
  uint64_t bytes;
} queue_slice;

/* What a copy does: the device's side is (memory, offset), the host's an address with an offset of 0. FILL sets each
 * 4-byte word of dst to pattern. bytes is at least 1, and both ranges lie inside their memory. */
enum { QUEUE_TO_DEVICE = 0, QUEUE_TO_HOST, QUEUE_WITHIN, QUEUE_FILL };
typedef struct queue_copy {
  uint32_t kind;
  uint32_t pattern;
  void *dst;
  uint64_t dst_offset;
  const void *src;
  uint64_t src_offset;
  uint64_t bytes;
} queue_copy;

/* What execute gets: the prepared op, and its operands in the region's order. */
typedef struct queue_work {
  void *op;
  const queue_slice *inputs;
  const queue_slice *outputs;
  uint32_t n_inputs;
  uint32_t n_outputs;
  queue_slice workspace;
} queue_work;

/* The vendor's part. device is what open gave. copy and execute are called by threads of the device, block until their work
 * is done, and return its failure: with HEDDLE_EDEVICE the device is lost, with any other the stream has failed. */
typedef struct queue_driver {
  const char *name;          /* of the plugin, for error texts */
  uint64_t alignment;        /* of each allocation and each offset; a power of two up to 4096 */
  uint64_t max_buffer_bytes; /* of kind DEVICE; 0: no limit */
  bool copy_thread; /* streams of kind COPY have a thread of their own: copy and execute run at the same time */

  /* Opens device index; queue is for queue_lose. close: nothing of the device is in use. Any thread, one at a time. */
  heddle_status (*open)(heddle_pinstance *self, uint32_t index, const heddle_pdevice_options *options,
                        heddle_pdevice *queue, void **device, heddle_error *err);
  void (*close)(void *device);

  /* Memory of kind DEVICE. Any thread, several at a time. */
  heddle_status (*alloc)(void *device, uint64_t bytes, uint64_t align, void **memory, heddle_error *err);
  void (*free)(void *device, void *memory);

  heddle_status (*copy)(void *device, const queue_copy *copy, heddle_error *err);
  heddle_status (*execute)(void *device, const queue_work *work, heddle_error *err);

  /* As heddle_op_table.prepare and op_free. Any thread, several at a time. */
  heddle_status (*prepare)(void *device, const heddle_pregion *region, uint32_t offer, void **op, heddle_error *err);
  void (*op_free)(void *op);

  /* Optional. Makes the present and all later calls of copy and execute return soon, with any status: the device is lost.
   * Any thread. Without it, a reset succeeds only if the work ends by itself in time. */
  void (*stop)(void *device);
} queue_driver;

/* The first member of the plugin's heddle_pinstance. */
typedef struct queue_instance {
  const heddle_host *host;
  const queue_driver *driver;
  uint64_t lose_at; /* the hook lose_on_fill of the conformance kit; UINT64_MAX: none */
} queue_instance;

/* The description of the hook, for the plugin's list of settings. */
#define QUEUE_SETTING_LOSE \
  { \
    .struct_size = sizeof(heddle_psetting), .type = HEDDLE_SETTING_NUMBER, .key = "lose_on_fill", .default_value = "", \
    .help = "for heddle check-plugin: a fill with this word loses the device", .high = UINT32_MAX \
  }

/* In open_instance: fills the members. HEDDLE_EINVAL for a wrong value of the hook. */
heddle_status queue_instance_init(queue_instance *self, const heddle_host *host, const queue_driver *driver,
                                  heddle_error *err);

/* Makes a device lost, for a driver that notices it by other means than a call. The first text counts. Any thread. */
void queue_lose(heddle_pdevice *dev, int32_t api_code, const char *text);

/* The tables, for the root. */
extern const heddle_device_table queue_device_table;
extern const heddle_memory_table queue_memory_table;
extern const heddle_copy_table queue_copy_table;
extern const heddle_stream_table queue_stream_table;
extern const heddle_event_table queue_event_table;
extern const heddle_fence_table queue_fence_table;
extern const heddle_capture_table queue_capture_table;

/* Members of the plugin's heddle_op_table: it adds struct_size, query, list and, where it has one, partition. */
void queue_launch_free(heddle_plaunch *launch);
void queue_op_free(heddle_pop *op);
heddle_status queue_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                            heddle_error *err);
heddle_status queue_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                         heddle_error *err);
heddle_status queue_run(heddle_plaunch *launch, heddle_error *err);
#define QUEUE_OPS \
  .launch_free = queue_launch_free, .op_free = queue_op_free, .prepare = queue_prepare, .bind = queue_bind, \
  .run = queue_run

#endif
