/* The vulkan plugin's own types, shared by its files: the instance with its devices, the device with its queues, memory,
 * streams, and the small services that all tables use. What is here is in the file of its noun. */
#ifndef HEDDLE_PLUGINS_VULKAN_VULKAN_H
#define HEDDLE_PLUGINS_VULKAN_VULKAN_H

#include "calls.h"

#include "plugins/common/perror.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct vlk_ops vlk_ops;     /* what operators keep on a device (ops.c) */
typedef struct vlk_block vlk_block; /* memory that buffers are parts of (memory.c) */

/* ---------------------------------------------------------------- instance (plugin.c, load.c, describe.c) */

enum { VLK_MOST_QUEUES = 5 }; /* four that compute, one that only copies */

/* What is known of a device; immutable. Numbers are the driver's limits unless said otherwise. */
typedef struct vlk_info {
  VkPhysicalDevice id;
  VkPhysicalDeviceMemoryProperties memory;
  uint32_t api_version; /* of the device, at least 1.1 */
  uint32_t spirv;       /* that it takes: 0x10300 for Vulkan 1.1, 0x10500 from 1.2 on */
  uint32_t vendor_id, device_id, driver_version;
  char name[128], driver[128];
  uint8_t uuid[16], cache_uuid[16];
  uint32_t pci[4];
  uint64_t memory_bytes, max_buffer_bytes, alignment, import_alignment, atom;
  uint64_t max_storage_range; /* bytes of one storage buffer binding */
  uint32_t max_bindings;      /* storage buffers that a shader has; at least 4 */
  uint32_t max_push_bytes;    /* of push constants; at least 128 */
  uint32_t max_groups[3];     /* of a dispatch; at least 65535 each */
  uint32_t max_group_items;   /* invocations of a group; at least 128 */
  uint32_t max_group_size[3]; /* of a group, each way */
  uint32_t max_shared_bytes;  /* of shared memory of a group; at least 16384 */
  uint32_t subgroup_size;     /* 0: no subgroups in compute shaders */
  uint32_t subgroup_ops;      /* VK_SUBGROUP_FEATURE_* of compute shaders; 0 without subgroups */
  uint32_t compute_units;     /* 1 where unknown: Vulkan does not say */
  uint32_t memory_types[3]; /* by HEDDLE_MEMORY_*; UINT32_MAX: none. Wishes: a device has those that its buffers take */
  uint32_t family, n_queues; /* that computes, and how many of its queues are used */
  uint32_t copy_family;      /* that only copies; UINT32_MAX: none is used */
  uint32_t timestamp_bits;   /* valid ones of family; 0: no times */
  float timestamp_period;    /* ns of a tick */
  bool is_cpu;               /* computes on the host's cores */
  bool integrated;           /* shares the host's memory, or is_cpu */
  bool unified;              /* HEDDLE_MEMORY_UNIFIED is there */
  bool noncoherent;          /* PINNED memory needs flush and invalidate */
  bool timeline, host_reset, calibrates, imports;
  bool fp16, int8, int16, int64, float64; /* arithmetic in shaders */
  bool storage16, storage8;               /* such elements in storage buffers */
  bool scalar_layout;                     /* scalarBlockLayout */
} vlk_info;

struct heddle_pinstance {
  const heddle_host *host;
  void *library; /* libvulkan */
  VkInstance instance;
  uint32_t api_version; /* of the instance: no more of a device is used */
  VkDebugUtilsMessengerEXT messenger;
  vlk_calls vk;
  vlk_info *devices;
  uint32_t n_devices;
  uint32_t max_streams;    /* setting; 0: not given */
  bool timeline;           /* setting: timeline semaphores where a device has them */
  bool unified;            /* setting: shared memory where a device has it */
  bool validate;           /* setting: the validation layer */
  int validate_log;        /* setting: a file for its messages, open to append; -1: none */
  bool fuse;               /* setting: chains of elementwise nodes become one */
  char *cache_dir;         /* setting, absolute; NULL: no pipeline cache on disk */
  uint64_t cache_bytes;    /* that it may take */
  atomic_bool left_behind; /* a device was, with work that hangs: the instance stays */
};

/* A setting of the instance into buf; false where it is not given. */
bool vlk_setting(const heddle_host *host, const char *key, char *buf, uint64_t bytes);

/* Zeroed bookkeeping, or fails with what it was for. */
heddle_status vlk_new(const heddle_host *host, uint64_t bytes, const char *what, void **out, heddle_error *err);

/* Opens libvulkan and makes the instance. HEDDLE_ENODEV with a message where there is none. */
heddle_status vlk_load(heddle_pinstance *self, heddle_error *err);
void vlk_unload(heddle_pinstance *self);

/* Fills devices. HEDDLE_ENODEV with a message where there are none. */
heddle_status vlk_find_devices(heddle_pinstance *self, heddle_error *err);

/* The types of memory for each kind, of those that buffers may lie in (a bit each): the wished ones where they may, else the
 * next best of the same properties. HEDDLE_EUNSUPPORTED with a message where a kind has none. */
heddle_status vlk_choose_memory(heddle_pdevice *dev, uint32_t allowed, heddle_error *err);

/* Makes a VkDevice with all that describe found, with one queue of copy_family where that is used. */
VkResult vlk_make_device(heddle_pinstance *self, const vlk_info *info, VkDevice *out, vlk_device_calls *calls);

/* ---------------------------------------------------------------- device (device.c, status.c) */

typedef struct vlk_queue vlk_queue;

struct heddle_pdevice {
  const heddle_host *host;
  heddle_pinstance *self;
  const vlk_info *info;
  VkDevice device;
  vlk_device_calls vk;
  vlk_queue *queues; /* n_queues that compute, then the one that copies where there is one */
  uint32_t n_queues, n_all_queues;
  uint64_t cookie;
  uint32_t index;
  uint32_t memory_types[3];       /* by HEDDLE_MEMORY_*; UINT32_MAX: none */
  bool timeline;                  /* streams have timeline semaphores; else their submissions have VkFences */
  atomic_bool faulted;            /* fault is set, for good */
  pthread_mutex_t lock;           /* guards streams, retired, and fault; a leaf, no driver is called with it held */
  pthread_mutex_t memory_lock;    /* guards blocks; the driver is called with it held */
  pthread_mutex_t build_lock;     /* guards ops; the driver is called with it held */
  struct heddle_pstream *streams; /* all ever made, closed ones too: they are used again */
  heddle_pgraph *retired;         /* captures that were freed while something ran */
  vlk_block *blocks;
  vlk_ops *ops;
  heddle_error fault;
  pthread_mutex_t service_lock;   /* guards service; the driver is called with it held */
  struct heddle_pstream *service; /* the plugin's own, for uploads and clocks; made at its first use */
  atomic_int_least64_t live_buffers, live_bytes, live_objects;
  atomic_uint next_queue;
};

static inline void vlk_count(atomic_int_least64_t *counter, int64_t by) {
  atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* The constant's name of a Vulkan code. */
const char *vlk_code_name(VkResult code);

/* HEDDLE_OK for a code that is no error, else fills err with "vulkan:0: WHAT: VK_... (-4)" and a status that fits.
 * VK_ERROR_DEVICE_LOST makes the device's fault sticky, and tells the host. dev may be NULL. Any thread. */
heddle_status vlk_check(heddle_pdevice *dev, VkResult code, const char *what, heddle_error *err);

/* HEDDLE_OK, or the sticky fault. */
heddle_status vlk_health(heddle_pdevice *dev, heddle_error *err);

/* ---------------------------------------------------------------- memory (memory.c, block.c) */

enum { VLK_KIND_IMPORT = 3 }; /* beside HEDDLE_MEMORY_*: the caller's memory */

/* Bytes [base, base + bytes) of buffer, which other ranges may share. Every buffer may be a storage buffer, a uniform
 * buffer and a side of copies. Immutable. */
struct heddle_pbuffer {
  heddle_pdevice *dev;
  VkBuffer buffer; /* VK_NULL_HANDLE: no bytes */
  uint64_t base, bytes;
  uint64_t room;               /* bytes that it takes of the block; of a view 0 */
  char *host;                  /* address of the range on the host; NULL where it has none */
  vlk_block *block;            /* that the range is in */
  struct heddle_pbuffer *next; /* in the block, by rising base; memory_lock */
  uint32_t kind;
  bool view;
};

/* Checks that bytes [offset, offset + bytes) lie in buffer. */
heddle_status vlk_range(heddle_pdevice *dev, const heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                        const char *what, heddle_error *err);

/* Finds room for a buffer's bytes in a block, or makes a block; sets buffer, base, room, host and block. give lets the
 * room go, and the block with its last buffer. import makes a block of the caller's memory. Any thread. */
VkResult vlk_block_types(heddle_pdevice *dev, uint32_t *out); /* a bit each: types of memory that buffers may lie in */
VkResult vlk_block_take(heddle_pdevice *dev, uint64_t align, heddle_pbuffer *buffer);
VkResult vlk_block_import(heddle_pdevice *dev, void *pointer, heddle_pbuffer *buffer);
void vlk_block_give(heddle_pbuffer *buffer);

/* Flushes (to_device) or invalidates a range of a mapped buffer, widened to the device's granule. */
VkResult vlk_block_sync(const heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes, bool to_device);

/* A buffer for the plugin's own use (parameters, tables, staging): as memory.alloc, but not counted as live. */
heddle_status vlk_buffer_make(heddle_pdevice *dev, uint32_t kind, uint64_t bytes, heddle_pbuffer **out,
                              heddle_error *err);
void vlk_buffer_free(heddle_pbuffer *buffer);

/* Puts bytes from the host into a buffer, on a stream of the device's own, and waits: for tables that are written when
 * an operator is prepared. Any thread. */
heddle_status vlk_upload(heddle_pdevice *dev, heddle_pbuffer *buffer, const void *data, uint64_t bytes,
                         heddle_error *err);

/* ---------------------------------------------------------------- streams (stream.c, submit.c, fence.c) */

/* The command buffer into which the next piece of work of the stream goes: that of the capture being recorded, else the
 * open one, begun where none is. A barrier orders the work after all that is before it. The stream's thread. */
heddle_status vlk_stream_work(heddle_pstream *stream, VkCommandBuffer *out, heddle_error *err);

/* What a command buffer has bound, of pipelines whose layouts have VLK_PUSH_WORDS words to push and nothing else: so that
 * a row of like operators binds once. Words are those that were pushed, at most n_push of them. */
enum { VLK_PUSH_WORDS = 32 };
typedef struct vlk_bound {
  VkPipeline pipeline; /* VK_NULL_HANDLE: none */
  uint32_t n_push;
  uint32_t push[VLK_PUSH_WORDS];
} vlk_bound;

/* As vlk_stream_work, for those who keep to such layouts: bound is what is bound there, and is kept up by the caller.
 * After vlk_stream_work nothing is known to be bound, since its caller may bind whatever he likes. */
heddle_status vlk_stream_work_bound(heddle_pstream *stream, VkCommandBuffer *out, vlk_bound **bound, heddle_error *err);

/* Says that a piece of work was recorded. */
void vlk_stream_worked(heddle_pstream *stream);

/* Orders what follows in a command buffer of a queue that computes after what is before, compute and copies alike. */
void vlk_barrier(const heddle_pdevice *dev, VkCommandBuffer commands);

/* The device that a stream belongs to. */
heddle_pdevice *vlk_stream_device(const heddle_pstream *stream);

/* ---------------------------------------------------------------- operators (ops.c and its own) */

/* Called when a device is closed, before its VkDevice goes; dev->ops may be NULL. */
void vlk_ops_close(heddle_pdevice *dev);

/* ---------------------------------------------------------------- tables */

extern const heddle_device_table vlk_device_table;
extern const heddle_memory_table vlk_memory_table;
extern const heddle_copy_table vlk_copy_table;
extern const heddle_stream_table vlk_stream_table;
extern const heddle_event_table vlk_event_table;
extern const heddle_fence_table vlk_fence_table;
extern const heddle_op_table vlk_op_table;
extern const heddle_module_table vlk_module_table;
extern const heddle_capture_table vlk_capture_table;
extern const heddle_timing_table vlk_timing_table;

#endif
